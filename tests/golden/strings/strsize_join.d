/* NAME strjoin() ends at strsize
 * OPTIONS -q -x strsize=8
 * SKIP does not compile: inlines nest too deeply
 */
BEGIN
{
	printf("%s\n", strjoin("01234", "56789"));
	exit(0);
}
/* EXPECT
 * 0123456
 *
 */

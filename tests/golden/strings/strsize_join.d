/* NAME strjoin() ends at strsize
 * OPTIONS -q -x strsize=8
 */
BEGIN
{
	printf("%s\n", strjoin("01234", "56789"));
	exit(0);
}
/* EXPECT
 * 01234567
 *
 */

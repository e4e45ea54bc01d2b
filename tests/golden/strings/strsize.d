/* NAME strings end at strsize
 * OPTIONS -q -x strsize=8
 */
BEGIN
{
	x = "0123456789";
	printf("%s %d\n", x, strlen(x));
	exit(0);
}
/* EXPECT
 * 0123456 7
 *
 */

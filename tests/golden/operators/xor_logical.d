/* NAME ^^ binds between && and ||
 * OPTIONS -q
 */
BEGIN
{
	printf("%d %d\n", 1 || 1 ^^ 1, 1 ^^ 0 && 0);
	exit(0);
}
/* EXPECT
 * 1 1
 *
 */

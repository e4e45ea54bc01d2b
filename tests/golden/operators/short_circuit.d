/* NAME && and || do not evaluate what is not needed
 * OPTIONS -q
 */
BEGIN
{
	x = 0 && *(int *)0;
	y = 1 || *(int *)0;
	printf("%d %d\n", x, y);
	exit(0);
}
/* EXPECT
 * 0 1
 *
 */

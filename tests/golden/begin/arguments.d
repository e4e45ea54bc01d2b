/* NAME the arguments of BEGIN are 0
 * OPTIONS -q
 */
BEGIN
{
	printf("%d %d\n", arg0, arg9);
	exit(0);
}
/* EXPECT
 * 0 0
 *
 */

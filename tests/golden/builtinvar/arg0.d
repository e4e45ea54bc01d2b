/* NAME the arguments of BEGIN are zero
 * OPTIONS -q
 */
BEGIN
{
	printf("%d %d %d\n", arg1, arg5, arg9);
	exit(0);
}
/* EXPECT
 * 0 0 0
 *
 */

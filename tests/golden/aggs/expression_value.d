/* NAME what is aggregated is an expression
 * OPTIONS -q
 */
BEGIN
{
	x = 5;
	@ = sum(x * 2 + 1);
	exit(0);
}
/* EXPECT
 *
 *                11
 */

/* NAME a negative count keeps the lowest values
 * OPTIONS -q
 */
BEGIN
{
	@[1] = sum(10);
	@[2] = sum(20);
	@[3] = sum(30);
	trunc(@, -2);
	exit(0);
}
/* EXPECT
 *
 *         1               10
 *         2               20
 */

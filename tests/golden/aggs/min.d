/* NAME min() keeps the smallest, with sign
 * OPTIONS -q
 */
BEGIN
{
	@s = min(10);
	@s = min(-30);
	@s = min(400);
	exit(0);
}
/* EXPECT
 *
 *               -30
 */

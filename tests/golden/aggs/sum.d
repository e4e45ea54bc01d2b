/* NAME sum() adds with sign
 * OPTIONS -q
 */
BEGIN
{
	@s = sum(10);
	@s = sum(-30);
	exit(0);
}
/* EXPECT
 *
 *               -20
 */

/* NAME percentile() needs a distribution
 * TAG D_PERCENTILE_FUNC
 */
BEGIN
{
	@a = count();
	percentile(@a, 50);
}

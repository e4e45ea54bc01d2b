/* NAME percentile() takes an aggregation that there is
 * TAG D_PERCENTILE_AGGBAD
 */
BEGIN
{
	percentile(@a, 50);
}

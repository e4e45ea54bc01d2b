/* NAME normalize() takes an aggregation that exists
 * TAG D_NORMALIZE_AGGBAD
 */
BEGIN
{
	normalize(@nowhere, 2);
}

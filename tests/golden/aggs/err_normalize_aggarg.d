/* NAME normalize() takes an aggregation
 * TAG D_NORMALIZE_AGGARG
 * SKIP the command says D_NORMALIZE_AGGBAD instead
 */
BEGIN
{
	normalize(1, 2);
}

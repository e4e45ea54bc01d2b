/* NAME normalize() takes an aggregation
 * TAG D_NORMALIZE_AGGARG
 */
BEGIN
{
	normalize(1, 2);
}

/* NAME trunc() takes an aggregation
 * TAG D_TRUNC_AGGARG
 */
BEGIN
{
	trunc(10);
}

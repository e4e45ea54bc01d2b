/* NAME trunc() takes an aggregation
 * TAG D_TRUNC_AGGARG
 * SKIP the command says D_TRUNC_AGGBAD instead
 */
BEGIN
{
	trunc(10);
}

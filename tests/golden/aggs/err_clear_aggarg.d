/* NAME clear() takes an aggregation
 * TAG D_CLEAR_AGGARG
 * SKIP the command says D_CLEAR_AGGBAD instead
 */
BEGIN
{
	clear(1);
}

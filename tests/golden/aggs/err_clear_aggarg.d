/* NAME clear() takes an aggregation
 * TAG D_CLEAR_AGGARG
 */
BEGIN
{
	clear(1);
}

/* NAME clear() takes an aggregation that exists
 * TAG D_CLEAR_AGGBAD
 */
BEGIN
{
	clear(@nowhere);
}

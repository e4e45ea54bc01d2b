/* NAME an aggregation has one list of keys
 * TAG D_AGG_MDIM
 */
BEGIN
{
	@x[1][2] = count();
}

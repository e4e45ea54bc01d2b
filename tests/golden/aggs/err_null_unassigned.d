/* NAME an aggregation alone is no statement, also where nothing assigns it
 * TAG D_AGG_NULL
 */
BEGIN
{
	@b[1];
}

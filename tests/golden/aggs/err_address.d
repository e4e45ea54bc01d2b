/* NAME an aggregation has no address
 * TAG D_ADDROF_VAR
 */
BEGIN
{
	@total = count();
	&@total;
}

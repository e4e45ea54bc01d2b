/* NAME an aggregation that nothing assigned is unknown
 * TAG D_IDENT_UNDEF
 */
BEGIN
{
	@total;
}

/* NAME an aggregation that nothing assigned is no operand
 * TAG D_IDENT_UNDEF
 */
BEGIN
{
	x = @total + 1;
}

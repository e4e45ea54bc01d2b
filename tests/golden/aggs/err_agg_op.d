/* NAME += does not aggregate
 * TAG D_VAR_UNDEF
 * SKIP the command says D_AGG_FUNC instead
 */
BEGIN
{
	@total += count();
}

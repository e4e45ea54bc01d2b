/* NAME += does not aggregate
 * TAG D_VAR_UNDEF
 */
BEGIN
{
	@total += count();
}

/* NAME what is aggregated must be a scalar
 * TAG D_AGG_SCALAR
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	@total = sum("text");
}

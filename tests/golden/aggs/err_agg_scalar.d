/* NAME what is aggregated must be a scalar
 * TAG D_AGG_SCALAR
 */
BEGIN
{
	@total = sum("text");
}

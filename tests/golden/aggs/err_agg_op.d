/* NAME += does not aggregate
 * TAG D_SYNTAX
 */
BEGIN
{
	@total += count();
}

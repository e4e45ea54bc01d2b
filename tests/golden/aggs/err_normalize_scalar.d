/* NAME normalize() divides by a number
 * TAG D_NORMALIZE_SCALAR
 */
BEGIN
{
	@total = count();
	normalize(@total, "two");
}

/* NAME normalize() takes two arguments
 * TAG D_NORMALIZE_PROTO
 */
BEGIN
{
	@total = count();
	normalize(@total);
}

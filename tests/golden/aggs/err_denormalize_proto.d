/* NAME denormalize() takes one argument
 * TAG D_NORMALIZE_PROTO
 */
BEGIN
{
	@total = count();
	denormalize(@total, 2);
}

/* NAME clear() takes one argument
 * TAG D_CLEAR_PROTO
 */
BEGIN
{
	@total = count();
	clear(@total, 1);
}

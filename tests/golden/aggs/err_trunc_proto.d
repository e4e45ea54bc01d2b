/* NAME trunc() takes one or two arguments
 * TAG D_TRUNC_PROTO
 */
BEGIN
{
	@total = count();
	trunc(@total, 1, 2);
}

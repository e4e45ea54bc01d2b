/* NAME trunc() keeps a number of keys
 * TAG D_TRUNC_SCALAR
 */
BEGIN
{
	@total[1] = count();
	trunc(@total, "five");
}

/* NAME trunc() keeps a number of keys
 * TAG D_TRUNC_SCALAR
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	@total[1] = count();
	trunc(@total, "five");
}

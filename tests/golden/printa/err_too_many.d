/* NAME printa() has no more conversions than keys
 * TAG D_PRINTF_ARG_PROTO
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	@[1] = count();
	printa("%d %d %@d\n", @);
}

/* NAME printa() has no more conversions than keys
 * TAG D_PRINTF_ARG_PROTO
 */
BEGIN
{
	@[1] = count();
	printa("%d %d %@d\n", @);
}

/* NAME a width needs a key
 * TAG D_PRINTF_DYN_PROTO
 */
BEGIN
{
	@a = count();
	printa("%@*d\n", @a);
}

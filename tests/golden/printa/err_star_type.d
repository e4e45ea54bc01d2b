/* NAME a width is an integer
 * TAG D_PRINTF_DYN_TYPE
 */
BEGIN
{
	@a["x", 1] = count();
	printa("%*d\n", @a);
}

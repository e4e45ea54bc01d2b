/* NAME the conversion fits the key's type
 * TAG D_PRINTF_ARG_TYPE
 */
BEGIN
{
	@["a"] = count();
	printa("%d %@d\n", @);
}

/* NAME the conversion fits the key's type
 * TAG D_PRINTF_ARG_TYPE
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	@["a"] = count();
	printa("%d %@d\n", @);
}

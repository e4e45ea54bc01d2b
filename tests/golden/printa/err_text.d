/* NAME an aggregation is no text
 * TAG D_PRINTF_ARG_TYPE
 */
BEGIN
{
	@a["x"] = count();
	printa("%s %@s\n", @a);
}

/* NAME a value conversion belongs to printa()
 * TAG D_PRINTF_AGG_CONV
 */
BEGIN
{
	printf("%@d\n", 1);
}

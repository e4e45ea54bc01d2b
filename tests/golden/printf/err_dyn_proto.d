/* NAME a dynamic width has its argument
 * TAG D_PRINTF_DYN_PROTO
 */
BEGIN
{
	printf("%*d\n");
}

/* NAME a dynamic width has its argument
 * TAG D_PRINTF_DYN_PROTO
 * SKIP the command says D_PRINTF_ARG_PROTO instead
 */
BEGIN
{
	printf("%*d\n");
}

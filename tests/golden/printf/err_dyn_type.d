/* NAME a dynamic width is an integer
 * TAG D_PRINTF_DYN_TYPE
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	printf("%*d\n", "w", 1);
}

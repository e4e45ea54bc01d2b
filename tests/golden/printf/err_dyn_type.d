/* NAME a dynamic width is an integer
 * TAG D_PRINTF_DYN_TYPE
 */
BEGIN
{
	printf("%*d\n", "w", 1);
}

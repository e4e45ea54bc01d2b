/* NAME too few arguments
 * TAG D_PRINTF_ARG_PROTO
 */
BEGIN
{
	printf("%d %d\n", 1);
}

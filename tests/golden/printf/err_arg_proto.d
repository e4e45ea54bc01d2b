/* NAME too few arguments
 * TAG D_PRINTF_ARG_PROTO
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	printf("%d %d\n", 1);
}

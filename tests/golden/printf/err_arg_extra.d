/* NAME too many arguments
 * TAG D_PRINTF_ARG_EXTRA
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	printf("%d\n", 1, 2);
}

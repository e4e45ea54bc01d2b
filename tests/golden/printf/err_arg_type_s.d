/* NAME an integer is no %s
 * TAG D_PRINTF_ARG_TYPE
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	printf("%s\n", 1);
}

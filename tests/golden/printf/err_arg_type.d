/* NAME a string is no %d
 * TAG D_PRINTF_ARG_TYPE
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	printf("%d\n", "one");
}

/* NAME a string is no %d
 * TAG D_PRINTF_ARG_TYPE
 */
BEGIN
{
	printf("%d\n", "one");
}

/* NAME an integer is no %s
 * TAG D_PRINTF_ARG_TYPE
 */
BEGIN
{
	printf("%s\n", 1);
}

/* NAME too many arguments
 * TAG D_PRINTF_ARG_EXTRA
 */
BEGIN
{
	printf("%d\n", 1, 2);
}

/* NAME printf() prints no aggregation
 * TAG D_PRINTF_ARG_TYPE
 */
BEGIN
{
	@n = count();
	printf("%d", @n);
}

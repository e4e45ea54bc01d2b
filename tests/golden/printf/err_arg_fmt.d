/* NAME the format is a string constant
 * TAG D_PRINTF_ARG_FMT
 */
BEGIN
{
	printf(probename);
}

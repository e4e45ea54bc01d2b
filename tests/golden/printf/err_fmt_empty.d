/* NAME the format is not empty
 * TAG D_PRINTF_FMT_EMPTY
 */
BEGIN
{
	printf("");
}

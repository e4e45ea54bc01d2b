/* NAME #error is an error without the preprocessor, too
 * TAG D_PRAGERR
 */
#error stop
BEGIN
{
	exit(0);
}

/* NAME a function that does not exist is an error
 * TAG D_FUNC_UNDEF
 */
BEGIN
{
	nowhere(1);
}

/* NAME $target without a command is no process
 * TAG D_MACRO_UNDEF
 */
BEGIN
{
	trace($nowhere);
}

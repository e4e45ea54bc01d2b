/* NAME a variable of another system is known, but not there
 * TAG D_VAR_UNSUP
 */
BEGIN
{
	trace(jailname);
}

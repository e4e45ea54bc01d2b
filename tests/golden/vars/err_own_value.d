/* NAME the value that declares a variable cannot use it
 * TAG D_VAR_UNDEF
 */
BEGIN
{
	x = x + 1;
}

/* NAME a variable's name is not that of a function
 * TAG D_FUNC_UNDEF
 */
BEGIN
{
	x = 1;
	x(2);
}

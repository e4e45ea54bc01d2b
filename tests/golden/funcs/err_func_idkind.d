/* NAME a variable is no function
 * TAG D_FUNC_IDKIND
 */
BEGIN
{
	timestamp();
}

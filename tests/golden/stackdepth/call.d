/* NAME stackdepth is no function
 * TAG D_FUNC_IDKIND
 */
BEGIN
{
	stackdepth(3);
}

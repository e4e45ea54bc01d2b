/* NAME an action's or an aggregating function's value cannot be a key
 * TAG D_KEY_TYPE
 */
BEGIN
{
	@a[count()] = count();
}

/* NAME a void expression is no key
 * TAG D_KEY_TYPE
 */
BEGIN
{
	@total[trace(1)] = count();
}

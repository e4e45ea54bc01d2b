/* NAME a pointer to a translated structure is no key of an aggregation
 * TAG D_KEY_TYPE
 */
BEGIN
{
	@a[curpsinfo] = count();
}

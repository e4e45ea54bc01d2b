/* NAME long stands at most twice in a type
 * TAG D_DECL_COMBO
 */
BEGIN
{
	trace((unsigned long long int long)1);
}

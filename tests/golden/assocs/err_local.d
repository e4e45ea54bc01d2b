/* NAME clause-local associative arrays do not exist
 * TAG D_DECL_LOCASSC
 */
this int a[int];
BEGIN
{
	exit(0);
}

/* NAME a declaration has one storage class
 * TAG D_DECL_CLASS
 */
self this int x;
BEGIN
{
	exit(0);
}

/* NAME no key is void
 * TAG D_DECL_PROTO_TYPE
 */
int a[int, void];
BEGIN { exit(0); }

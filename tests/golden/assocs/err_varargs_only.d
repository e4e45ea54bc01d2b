/* NAME an array has no variable number of keys
 * TAG D_DECL_PROTO_VARARGS
 */
int a[...];
BEGIN { exit(0); }

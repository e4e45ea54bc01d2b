/* NAME parameters have different names
 * TAG D_DECL_PROTO_FORM
 */
int f(int a, int a);
BEGIN { exit(0); }

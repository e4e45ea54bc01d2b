/* NAME a function does not return an array
 * TAG D_DECL_PROTO_FORM
 */
int f(int)[3];

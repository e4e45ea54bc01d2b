/* NAME a prototype names types, not just parameters
 * TAG D_DECL_IDENT
 */
int f(a, b);

/* NAME a variable is not void
 * TAG D_DECL_VOIDOBJ
 */
void x;
BEGIN { exit(0); }

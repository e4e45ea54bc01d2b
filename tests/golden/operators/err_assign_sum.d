/* NAME only what could be an lvalue stands left of =
 * TAG D_SYNTAX
 */
BEGIN { x = 1; x + 1 = 2; }

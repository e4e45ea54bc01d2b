/* NAME . needs a union
 * TAG D_OP_SOU
 */
BEGIN { x = 1; trace(x.a); }

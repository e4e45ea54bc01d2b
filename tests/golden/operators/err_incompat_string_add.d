/* NAME a string is not added to
 * TAG D_OP_INCOMPAT
 */
BEGIN { x = "abc"; x += 1; }

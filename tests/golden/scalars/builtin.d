/* NAME a built-in variable keeps its value
 * TAG D_OP_WRITE
 */
BEGIN { timestamp = 1; }

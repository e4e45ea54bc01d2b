/* NAME a pointer is compared with a pointer or 0
 * TAG D_OP_INCOMPAT
 */
BEGIN { trace((int *)arg0 == 1); }

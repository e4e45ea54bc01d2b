/* NAME pointers to void have no difference
 * TAG D_OP_INCOMPAT
 */
BEGIN { trace((void *)arg0 - (void *)arg1); }

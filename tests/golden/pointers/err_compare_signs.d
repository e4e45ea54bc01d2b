/* NAME pointers to signed and unsigned do not mix
 * TAG D_OP_INCOMPAT
 */
BEGIN { trace((int *)arg0 == (unsigned int *)arg1); }

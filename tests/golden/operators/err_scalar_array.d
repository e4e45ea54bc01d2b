/* NAME an array is no truth value
 * TAG D_OP_SCALAR
 */
int a[4];
BEGIN { trace(a && 1); }

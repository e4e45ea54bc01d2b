/* NAME an array is not assigned to an array
 * TAG D_OP_ARRFUN
 */
int a[4], b[4];
BEGIN { a = b; }

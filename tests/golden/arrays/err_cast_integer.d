/* NAME an array is not cast to an integer
 * TAG D_CAST_INVAL
 */
int a[4];
BEGIN { trace((int)a); }

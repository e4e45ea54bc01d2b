/* NAME a constant index lies in its array
 * TAG D_ARR_BOUNDS
 */
int a[4];
BEGIN { a[4] = 1; }

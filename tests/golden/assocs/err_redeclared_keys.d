/* NAME an array is declared again with the same keys only
 * TAG D_DECL_IDRED
 */
int a[int];
int a[string];
BEGIN { exit(0); }

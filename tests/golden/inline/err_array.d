/* NAME an inline is no array
 * TAG D_DECL_ARRNULL
 */
inline int n[5] = 1;
BEGIN { exit(0); }

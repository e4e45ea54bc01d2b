/* NAME an inline does not take a subroutine's name
 * TAG D_DECL_IDRED
 */
inline int strlen = 3;
BEGIN { exit(0); }

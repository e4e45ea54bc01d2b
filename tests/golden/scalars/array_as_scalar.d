/* NAME an associative array is no scalar
 * TAG D_IDENT_BADREF
 */
BEGIN { a[1] = 2; trace(a); }

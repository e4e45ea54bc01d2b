/* NAME a variable is declared once with one type
 * TAG D_DECL_IDRED
 */
int x;
long x;
BEGIN { exit(0); }

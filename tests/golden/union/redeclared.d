/* NAME a union is declared once
 * TAG D_DECL_TYPERED
 */
union u { int a; };
union u { int b; };
BEGIN { exit(0); }

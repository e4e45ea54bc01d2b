/* NAME the members of a union have different names
 * TAG D_UNKNOWN
 */
union u { int a; char a; };
BEGIN { exit(0); }

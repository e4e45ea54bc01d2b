/* NAME a translator is declared once
 * TAG D_XLATE_REDECL
 */
struct in {
	int i;
};
struct out {
	int more;
};
translator struct out < struct in *P > {
	more = P->i;
};
translator struct out < struct in *Q > {
	more = Q->i;
};
BEGIN
{
	exit(0);
}

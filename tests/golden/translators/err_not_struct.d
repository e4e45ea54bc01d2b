/* NAME a translator makes a struct
 * TAG D_XLATE_SOU
 */
struct in {
	int i;
};
translator int < struct in *P > {
	more = P->i;
};
BEGIN
{
	exit(0);
}

/* NAME a translator sets members that exist
 * TAG D_XLATE_MEMB
 */
struct in {
	int i;
};
struct out {
	int more;
};
translator struct out < struct in *P > {
	less = P->i;
};
BEGIN
{
	exit(0);
}

/* NAME a member's expression fits its type
 * TAG D_XLATE_INCOMPAT
 */
struct in {
	int i;
};
struct out {
	int more;
};
translator struct out < struct in *P > {
	more = "text";
};
BEGIN
{
	exit(0);
}

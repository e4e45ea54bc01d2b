/* NAME the width of a bit-field is a constant
 * TAG D_DECL_BFCONST
 */
struct bits {
	int a : -1;
};
BEGIN
{
	exit(0);
}

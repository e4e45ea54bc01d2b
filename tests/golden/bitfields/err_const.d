/* NAME the width of a bit-field is a constant
 * TAG D_DECL_BFCONST
 * SKIP the command says D_UNKNOWN instead
 */
struct bits {
	int a : -1;
};
BEGIN
{
	exit(0);
}

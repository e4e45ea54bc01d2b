/* NAME a bit-field is not wider than its type
 * TAG D_DECL_BFSIZE
 */
struct bits {
	int a : 65;
};
BEGIN
{
	exit(0);
}

/* NAME a bit-field is an integer
 * TAG D_DECL_BFTYPE
 */
struct bits {
	float a : 3;
};
BEGIN
{
	exit(0);
}

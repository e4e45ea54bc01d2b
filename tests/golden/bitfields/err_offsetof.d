/* NAME a bit-field has no offset
 * TAG D_OFFSETOF_BITFIELD
 */
struct bits {
	int a : 3;
	int b : 5;
};
BEGIN
{
	trace(offsetof(struct bits, b));
}

/* NAME a bit-field has no size in bytes
 * TAG D_SIZEOF_BITFIELD
 */
struct bits {
	int a : 3;
	int b : 5;
};
struct bits *s;
BEGIN
{
	trace(sizeof (s->b));
}

/* NAME a bit-field has no address
 * TAG D_ADDROF_BITFIELD
 */
struct flags {
	int low : 3;
	int high : 5;
};
struct flags *base;
BEGIN
{
	trace(&base->high);
}

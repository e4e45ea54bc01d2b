/* NAME a bit-field has no offset in bytes
 * TAG D_OFFSETOF_BITFIELD
 */
struct in {
	char a;
	long b;
};
struct out {
	char c;
	struct in in;
	int list[3];
	unsigned int bits : 3;
};
BEGIN { trace(offsetof(struct out, bits)); }

/* NAME offsetof needs the struct, not a pointer to it
 * TAG D_OFFSETOF_TYPE
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
BEGIN { trace(offsetof(struct out *, c)); }

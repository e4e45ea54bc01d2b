/* NAME offsetof needs a member that is there
 * TAG D_UNKNOWN
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
BEGIN { trace(offsetof(struct out, nothing)); }

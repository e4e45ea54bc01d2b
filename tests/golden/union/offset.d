/* NAME all members of a union are at 0
 * OPTIONS -q
 */
union u {
	int i;
	char c[8];
	struct { short low, high; } parts;
};
union u x;

BEGIN
{
	printf("%d %d %d\n", offsetof(union u, i), offsetof(union u, c), offsetof(union u, parts));
	exit(0);
}
/* EXPECT
 * 0 0 0
 *
 */

/* NAME a union has the size of its largest member, aligned
 * OPTIONS -q
 */
union u {
	int i;
	char c[8];
	struct { short low, high; } parts;
};
union u x;
union odd {
	int i;
	char c[5];
};

BEGIN
{
	printf("%d %d %d\n", sizeof(union u), sizeof(x.parts), sizeof(union odd));
	exit(0);
}
/* EXPECT
 * 8 4 8
 *
 */

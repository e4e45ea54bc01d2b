/* NAME writing one member changes the others
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
	x.i = 0x30001;
	printf("%d %d %d\n", x.parts.low, x.parts.high, x.c[2]);
	exit(0);
}
/* EXPECT
 * 1 3 3
 *
 */

/* NAME a signed bit-field has a sign
 * OPTIONS -q
 */
struct bits {
	int a : 4;
	int b : 4;
};
struct bits s;
BEGIN
{
	s.a = 15;
	s.b = 7;
	printf("%d %d\n", s.a, s.b);
	exit(0);
}
/* EXPECT
 * -1 7
 *
 */

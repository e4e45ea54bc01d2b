/* NAME storing a bit-field leaves its neighbours alone
 * OPTIONS -q
 */
struct bits {
	unsigned int a : 3;
	unsigned int b : 5;
};
struct bits s;
BEGIN
{
	s.a = 7;
	s.b = 0;
	s.a = 2;
	s.b = 33;
	printf("%d %d\n", s.a, s.b);
	exit(0);
}
/* EXPECT
 * 2 1
 *
 */

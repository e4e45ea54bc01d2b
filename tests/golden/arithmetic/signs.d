/* NAME the wider type says whether there is a sign, or the unsigned one of equally wide types
 * OPTIONS -q
 */
BEGIN
{
	n = -1;
	s = (short)-1;
	u = (unsigned int)1;
	us = (unsigned short)1;
	l = -1L;
	ul = 1UL;
	printf("%d %d %d\n", n < u, n == 0xffffffff, n < 4294967295);
	printf("%d %d %d\n", s < us, n < us, l < u);
	printf("%d %d\n", l < ul, n < ul);
	printf("%d %d\n", -7 / 2UL, -7 / u);
	printf("%d %d\n", n >> 1, (u - 2) >> 1);
	i = -8;
	i /= 3UL;
	printf("%d\n", i);
	exit(0);
}
/* EXPECT
 * 0 0 1
 * 0 1 1
 * 0 0
 * 9223372036854775804 4294967289
 * -1 4294967295
 * -2
 *
 */

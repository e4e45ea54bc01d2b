/* NAME operands nest deeper than there are registers
 * OPTIONS -q
 */
int a;
string s[int];

BEGIN
{
	a = 2;
	s[2] = "x";
	printf("%d\n", a + (a * (a + (a * (a + (a * (a + (a * (a + (a * (a + (a * (a + 1)))))))))))));
	printf("%s\n", strjoin(s[2], strjoin(s[a], strjoin(s[a / 1], strjoin(s[a * 1],
	    strjoin(s[a + 0], strjoin(s[a - 0], strjoin(s[a | 0], strjoin(s[a & 2],
	    strjoin(s[a ^ 0], strjoin(s[a << 0], strjoin(s[a >> 0], s[a]))))))))))));
	exit(0);
}
/* EXPECT
 * 318
 * xxxxxxxxxxxx
 *
 */

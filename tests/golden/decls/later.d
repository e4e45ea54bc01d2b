/* NAME declarations count in the clauses before them, too
 * OPTIONS -q
 */
BEGIN
{
	x = 300;
	printf("%d %d\n", x, X);
	exit(0);
}
unsigned char x;
inline int X = 5;
/* EXPECT
 * 44 5
 *
 */

/* NAME every variable has the size of its type
 * OPTIONS -q
 */
char c;
int i;
long l;
string s;

BEGIN
{
	printf("%d %d %d %d\n", sizeof(c), sizeof(i), sizeof(l), sizeof(s));
	exit(0);
}
/* EXPECT
 * 1 4 8 256
 *
 */

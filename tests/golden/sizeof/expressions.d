/* NAME sizeof of types and expressions
 * OPTIONS -q
 */
int n;
string s;
BEGIN
{
	printf("%d %d %d %d %d\n", sizeof n, sizeof (n), sizeof ('a'), sizeof (1LL), sizeof (s));
	exit(0);
}
/* EXPECT
 * 4 4 4 8 256
 *
 */

/* NAME a string is as large as strsize says
 * OPTIONS -q -x strsize=100
 */
string s;
BEGIN
{
	printf("%d\n", sizeof (s));
	exit(0);
}
/* EXPECT
 * 100
 *
 */

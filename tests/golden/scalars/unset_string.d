/* NAME a string that was never set is empty, not NULL
 * OPTIONS -q
 */
string s;

BEGIN
{
	printf("[%s] %d\n", s, s == NULL);
	s = NULL;
	printf("%d\n", s == NULL);
	exit(0);
}
/* EXPECT
 * [] 0
 * 1
 *
 */

/* NAME a variable that was declared is zero
 * OPTIONS -q
 */
int number;
string text;
BEGIN
{
	printf("%d [%s]\n", number, text);
	exit(0);
}
/* EXPECT
 * 0 []
 *
 */

/* NAME an enumerator without a name is a number
 * OPTIONS -q
 */
enum e { ONE = 1 };
enum e x;

BEGIN
{
	x = (enum e)9;
	print(x);
	exit(0);
}
/* EXPECT
 * enum e 9
 *
 */

/* NAME -L adds a folder of D libraries, in the order they need
 * OPTIONS -q -L lib
 * FILE aux/lib
 */
BEGIN
{
	printf("%d %d\n", first, second);
	exit(0);
}
/* EXPECT
 * 11 10
 *
 */

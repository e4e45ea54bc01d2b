/* NAME an argument may be a negative number
 * ARGS -- -5
 * OPTIONS -q
 */
BEGIN
{
	printf("%d\n", $1 + 1);
	exit(0);
}
/* EXPECT
 * -4
 *
 */

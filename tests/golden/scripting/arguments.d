/* NAME $1, $2 are the words after the script, as they are
 * ARGS 12 0x10
 * OPTIONS -q
 */
BEGIN
{
	printf("%d %d\n", $1, $2 + 1);
	exit(0);
}
/* EXPECT
 * 12 17
 *
 */

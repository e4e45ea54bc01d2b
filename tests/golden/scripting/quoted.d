/* NAME an argument in quotes is a string
 * ARGS '"a b"'
 * OPTIONS -q
 */
BEGIN
{
	printf("%s\n", $1);
	exit(0);
}
/* EXPECT
 * a b
 *
 */

/* NAME an argument in quotes is a string
 * ARGS '"a b"'
 * OPTIONS -q
 * SKIP does not compile: failed to resolve "a b": Unknown variable name
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

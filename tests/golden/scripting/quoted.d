/* NAME an argument in quotes is a string
 * ARGS '"a b"'
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
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

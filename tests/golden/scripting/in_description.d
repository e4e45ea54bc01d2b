/* NAME an argument may name the probe
 * ARGS BEGIN
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
 */
$1
{
	printf("%s\n", probename);
	exit(0);
}
/* EXPECT
 * BEGIN
 *
 */

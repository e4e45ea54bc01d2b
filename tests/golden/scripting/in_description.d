/* NAME an argument may name the probe
 * ARGS BEGIN
 * OPTIONS -q
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

/* NAME an argument may be a name
 * ARGS probename
 * OPTIONS -q
 */
BEGIN
{
	printf("%s\n", $1);
	exit(0);
}
/* EXPECT
 * BEGIN
 *
 */

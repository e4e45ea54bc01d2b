/* NAME an argument that is no name or number is a string
 * ARGS /tmp/x.y
 * OPTIONS -q
 */
BEGIN
{
	printf("%s\n", $1);
	exit(0);
}
/* EXPECT
 * /tmp/x.y
 *
 */

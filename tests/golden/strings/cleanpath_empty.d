/* NAME cleanpath() of the empty string is empty
 * OPTIONS -q
 */
BEGIN
{
	printf("[%s][%s][%s]\n", cleanpath(""), cleanpath("/"), cleanpath("a/.."));
	exit(0);
}
/* EXPECT
 * [][/][.]
 *
 */

/* NAME basename() and dirname() as the commands
 * OPTIONS -q
 */
BEGIN
{
	printf("%s %s %s\n", basename("/usr/lib/x"), basename("/usr/lib/"), basename("x"));
	printf("%s %s %s %s\n", dirname("/usr/lib/x"), dirname("/usr/lib/"), dirname("x"), dirname("/x"));
	exit(0);
}
/* EXPECT
 * x lib x
 * /usr/lib /usr . /
 *
 */

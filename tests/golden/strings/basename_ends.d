/* NAME basename() and dirname() of nothing and of the root
 * OPTIONS -q
 */
BEGIN
{
	printf("%s %s %s %s\n", basename("/"), basename(""), dirname("/"), dirname(""));
	exit(0);
}
/* EXPECT
 * / . / .
 *
 */

/* NAME with defaultargs missing arguments are 0 and ""
 * OPTIONS -q -x defaultargs
 */
BEGIN
{
	printf("%d [%s]\n", $1, $$2);
	exit(0);
}
/* EXPECT
 * 0 []
 *
 */

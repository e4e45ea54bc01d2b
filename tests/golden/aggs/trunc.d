/* NAME trunc() removes all keys
 * OPTIONS -q
 */
BEGIN
{
	@t["a"] = sum(5);
	@t["b"] = sum(7);
	trunc(@t);
	printa("%s %@d\n", @t);
	printf("none\n");
	exit(0);
}
/* EXPECT
 * none
 *
 */

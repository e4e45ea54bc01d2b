/* NAME trunc() removes all keys
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
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

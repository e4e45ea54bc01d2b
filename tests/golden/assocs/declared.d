/* NAME declared associative arrays
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
 */
int table[int, string];
BEGIN
{
	table[1, "a"]++;
	table[1, "a"]++;
	printf("%d\n", table[1, "a"]);
	exit(0);
}
/* EXPECT
 * 2
 *
 */

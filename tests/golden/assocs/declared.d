/* NAME declared associative arrays
 * OPTIONS -q
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

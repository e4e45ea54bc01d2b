/* NAME strings compare by their characters
 * OPTIONS -q
 */
BEGIN
{
	printf("%d%d%d%d%d%d\n", "abc" < "abd", "abc" > "ab", "abc" == "abc", "a" != "b",
	    "b" <= "a", "" >= "");
	exit(0);
}
/* EXPECT
 * 111101
 *
 */

/* NAME index() and rindex() give positions
 * OPTIONS -q
 */
BEGIN
{
	printf("%d %d %d\n", index("abcabc", "c"), index("abcabc", "x"), index("abcabc", "c", 3));
	printf("%d %d %d\n", rindex("abcabc", "c"), rindex("abcabc", "x"), rindex("abcabc", "c", 4));
	exit(0);
}
/* EXPECT
 * 2 -1 5
 * 5 -1 2
 *
 */

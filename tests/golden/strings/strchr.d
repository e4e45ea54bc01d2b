/* NAME strchr() and strrchr() find a character
 * OPTIONS -q
 */
BEGIN
{
	printf("%s %s\n", strchr("a/b/c", '/'), strrchr("a/b/c", '/'));
	printf("%d\n", strchr("abc", 'x') == NULL);
	exit(0);
}
/* EXPECT
 * /b/c /c
 * 1
 *
 */

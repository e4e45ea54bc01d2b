/* NAME strlen() counts bytes
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
 */
BEGIN
{
	printf("%d %d\n", strlen("hello"), strlen(""));
	exit(0);
}
/* EXPECT
 * 5 0
 *
 */

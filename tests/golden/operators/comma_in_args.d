/* NAME parentheses make a comma operator an argument
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
 */
BEGIN
{
	printf("%d\n", (1, 2));
	exit(0);
}
/* EXPECT
 * 2
 *
 */

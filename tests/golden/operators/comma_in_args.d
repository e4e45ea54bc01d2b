/* NAME parentheses make a comma operator an argument
 * OPTIONS -q
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

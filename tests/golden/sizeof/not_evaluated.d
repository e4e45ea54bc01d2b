/* NAME the operand of sizeof is not evaluated
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
 */
BEGIN
{
	printf("%d\n", sizeof (*(int *)0));
	exit(0);
}
/* EXPECT
 * 4
 *
 */

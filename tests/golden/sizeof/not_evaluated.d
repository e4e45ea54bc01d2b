/* NAME the operand of sizeof is not evaluated
 * OPTIONS -q
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

/* NAME a function's name may stand in parentheses
 * OPTIONS -q
 */
BEGIN
{
	printf("%d\n", (strlen)("four"));
	exit(0);
}
/* EXPECT
 * 4
 *
 */

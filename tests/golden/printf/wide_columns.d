/* NAME a table with widths
 * OPTIONS -q
 */
BEGIN
{
	printf("%-10s %10s\n", "NAME", "COUNT");
	printf("%-10s %10d\n", "one", 1);
	exit(0);
}
/* EXPECT
 * NAME            COUNT
 * one                 1
 *
 */

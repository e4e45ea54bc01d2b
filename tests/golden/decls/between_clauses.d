/* NAME a declaration may stand between clauses
 * OPTIONS -q
 */
BEGIN
{
	printf("a\n");
}
int x;
BEGIN
{
	x++;
	printf("%d\n", x);
	exit(0);
}
/* EXPECT
 * a
 * 1
 *
 */

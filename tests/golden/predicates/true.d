/* NAME a predicate that is not zero lets the clause run
 * OPTIONS -q
 */
BEGIN / 2 > 1 /
{
	printf("yes\n");
}
BEGIN / 1 > 2 /
{
	printf("no\n");
}
BEGIN
{
	exit(0);
}
/* EXPECT
 * yes
 *
 */

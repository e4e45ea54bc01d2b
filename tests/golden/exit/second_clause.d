/* NAME later clauses of the probe that called exit() do not run
 * OPTIONS -q
 */
BEGIN
{
	printf("one\n");
	exit(0);
}
BEGIN
{
	printf("two\n");
}
/* EXPECT
 * one
 *
 */

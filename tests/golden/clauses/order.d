/* NAME the clauses of a probe run in the order of the program
 * OPTIONS -q
 */
BEGIN
{
	printf("1");
}
END
{
	printf("4\n");
}
BEGIN
{
	printf("2");
}
BEGIN
{
	printf("3");
	exit(0);
}
/* EXPECT
 * 1234
 *
 */

/* NAME a variable set in one clause is seen by a later predicate
 * OPTIONS -q
 */
BEGIN
{
	seen = 1;
}
BEGIN / seen /
{
	printf("seen\n");
}
BEGIN / !seen /
{
	printf("unseen\n");
}
BEGIN
{
	exit(0);
}
/* EXPECT
 * seen
 *
 */

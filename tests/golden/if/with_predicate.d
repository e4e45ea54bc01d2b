/* NAME a clause may have a predicate and an if
 * OPTIONS -q
 */
BEGIN / 1 /
{
	if (0) { printf("a\n"); } else { printf("b\n"); }
}
BEGIN / 0 /
{
	if (1) { printf("c\n"); }
}
BEGIN
{
	exit(0);
}
/* EXPECT
 * b
 *
 */

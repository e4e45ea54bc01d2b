/* NAME a condition that is a constant takes its side at once
 * OPTIONS -q
 * ARGS 0
 */
BEGIN
{
	$1 ? printf("a\n") : printf("b\n");
	1 == 1 ? printf("c\n") : printf("%d\n", nothing);
	sizeof (int) == 4 ? trace("d\n") : trace(1);
	@ = 0 ? sum(7) : count();
	printf("%d %s\n", sizeof (1 ? (char)65 : 1), 0 ? 1 : "text");
	exit(0);
}
/* EXPECT
 * b
 * c
 * d
 * 1 text
 *
 *                 1
 */

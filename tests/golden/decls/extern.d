/* NAME extern declares, too
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
 */
extern int x;
BEGIN
{
	x = 2;
	printf("%d\n", x);
	exit(0);
}
/* EXPECT
 * 2
 *
 */

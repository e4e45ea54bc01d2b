/* NAME the last statement needs no semicolon
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
 */
BEGIN
{
	printf("x\n");
	exit(0)
}
/* EXPECT
 * x
 *
 */

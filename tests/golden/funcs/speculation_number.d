/* NAME speculation() counts from one
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
 */
BEGIN
{
	printf("%d\n", speculation());
	exit(0);
}
/* EXPECT
 * 1
 *
 */

/* NAME %S shows what cannot be printed as an escape
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
 */
BEGIN
{
	printf("%S\n", "a\tb\n");
	exit(0);
}
/* EXPECT
 * a\tb\n
 *
 */

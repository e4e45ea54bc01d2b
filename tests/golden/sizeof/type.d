/* NAME sizeof has the type size_t
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
 */
BEGIN
{
	printf("%d\n", sizeof (sizeof (int)));
	exit(0);
}
/* EXPECT
 * 8
 *
 */

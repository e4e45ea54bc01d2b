/* NAME five levels of if
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
 */
BEGIN
{
	if (1) { if (1) { if (1) { if (1) { if (1) { printf("deep\n"); } } } } }
	exit(0);
}
/* EXPECT
 * deep
 *
 */

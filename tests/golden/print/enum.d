/* NAME print() prints the name of an enumerator
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
 */
enum color {
	RED,
	GREEN
};
BEGIN
{
	print((enum color)1);
	exit(0);
}
/* EXPECT
 * enum color GREEN
 *
 */

/* NAME print() prints the name of an enumerator
 * OPTIONS -q
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

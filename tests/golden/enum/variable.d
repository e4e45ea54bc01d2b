/* NAME a variable of an enum type
 * OPTIONS -q
 */
enum color {
	RED,
	GREEN
};
enum color c;
BEGIN
{
	c = GREEN;
	printf("%d %s\n", c, c == GREEN ? "green" : "red");
	exit(0);
}
/* EXPECT
 * 1 green
 *
 */

/* NAME %c prints a character
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
 */
BEGIN
{
	printf("%c%c%c\n", 'D', 0x2d, 'x');
	exit(0);
}
/* EXPECT
 * D-x
 *
 */

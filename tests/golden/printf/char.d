/* NAME %c prints a character
 * OPTIONS -q
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

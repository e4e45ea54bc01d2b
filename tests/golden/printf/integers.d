/* NAME integers in all bases
 * OPTIONS -q
 */
BEGIN
{
	printf("%d %i %u %o %x %X\n", -1, 2, 3, 8, 255, 255);
	exit(0);
}
/* EXPECT
 * -1 2 3 10 ff FF
 *
 */

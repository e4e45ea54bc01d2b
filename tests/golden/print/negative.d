/* NAME negative numbers show the bits of their type
 * OPTIONS -q
 */
short s;

BEGIN
{
	s = -1;
	print(s);
	exit(0);
}
/* EXPECT
 * short 0xffff
 *
 */

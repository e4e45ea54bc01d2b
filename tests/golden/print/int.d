/* NAME print() prints the type and the value
 * OPTIONS -q
 */
BEGIN
{
	print((int)4);
	exit(0);
}
/* EXPECT
 * int 0x4
 *
 */

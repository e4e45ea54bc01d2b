/* NAME pointers are numbers
 * OPTIONS -q
 */
BEGIN
{
	print((char *)64);
	exit(0);
}
/* EXPECT
 * char * 0x40
 *
 */

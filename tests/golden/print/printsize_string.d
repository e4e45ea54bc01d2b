/* NAME printsize cuts off strings
 * OPTIONS -q -x printsize=4
 */
BEGIN
{
	print("abcdefg");
	exit(0);
}
/* EXPECT
 * string [ "abcd" ]
 *
 */

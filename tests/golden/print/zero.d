/* NAME zero is a plain 0
 * OPTIONS -q
 */
BEGIN
{
	print(0);
	exit(0);
}
/* EXPECT
 * int 0
 *
 */

/* NAME %@x prints the value in hex
 * OPTIONS -q
 */
BEGIN
{
	@ = sum(255);
	printa("%@x %@o %@u\n", @);
	exit(0);
}
/* EXPECT
 * ff 377 255
 *
 */

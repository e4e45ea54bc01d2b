/* NAME %@x prints the value in hex
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
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

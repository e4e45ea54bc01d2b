/* NAME strtoll() takes a base
 * OPTIONS -q
 */
BEGIN
{
	printf("%d %d %d %d\n", strtoll("ff", 16), strtoll("777", 8), strtoll("101", 2),
	    strtoll("0x1F", 16));
	exit(0);
}
/* EXPECT
 * 255 511 5 31
 *
 */

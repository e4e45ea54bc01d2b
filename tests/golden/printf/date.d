/* NAME %Y prints a date, %T one of RFC 822
 * OPTIONS -q
 */
BEGIN
{
	printf("%Y\n", (int64_t)0);
	exit(0);
}
/* EXPECT
 * 1970 Jan  1 00:00:00
 *
 */

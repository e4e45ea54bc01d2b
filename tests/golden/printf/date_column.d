/* NAME %Y has a width
 * OPTIONS -q
 */
BEGIN
{
	printf("[%-22Y]\n", (int64_t)86400000000000);
	exit(0);
}
/* EXPECT
 * [1970 Jan  2 00:00:00  ]
 *
 */

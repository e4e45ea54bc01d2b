/* NAME substr() beyond the ends
 * OPTIONS -q
 */
BEGIN
{
	printf("[%s] [%s] [%s] [%s]\n", substr("abc", 3), substr("abc", 10), substr("abc", 1, 99),
	    substr("abc", 0, -1));
	exit(0);
}
/* EXPECT
 * [] [] [bc] [ab]
 *
 */

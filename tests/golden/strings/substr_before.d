/* NAME substr() of what lies before the string is empty
 * OPTIONS -q
 */
BEGIN
{
	printf("[%s] [%s]\n", substr("hello", -10, 3), substr("hello", -10, 7));
	exit(0);
}
/* EXPECT
 * [] [he]
 *
 */

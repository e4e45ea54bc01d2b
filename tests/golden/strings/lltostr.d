/* NAME lltostr() makes a string of a number
 * OPTIONS -q
 */
BEGIN
{
	printf("%s %s %s\n", lltostr(123), lltostr(-45), lltostr(0));
	exit(0);
}
/* EXPECT
 * 123 -45 0
 *
 */

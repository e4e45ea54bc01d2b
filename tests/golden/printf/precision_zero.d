/* NAME a precision of 0 is none
 * OPTIONS -q
 */
BEGIN
{
	printf("%.0d|%.s|%.0s|%.*s|%.2s\n", 0, "abc", "abc", 0, "abc", "abc");
	exit(0);
}
/* EXPECT
 * 0|abc|abc|abc|ab
 *
 */

/* NAME strlen() counts bytes
 * OPTIONS -q
 */
BEGIN
{
	printf("%d %d\n", strlen("hello"), strlen(""));
	exit(0);
}
/* EXPECT
 * 5 0
 *
 */

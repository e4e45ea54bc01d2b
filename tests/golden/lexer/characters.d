/* NAME character constants and their escapes
 * OPTIONS -q
 */
BEGIN
{
	printf("%d %d %d %d %d %d\n", 'a', '\n', '\0', '\x41', '\101', '\\');
	exit(0);
}
/* EXPECT
 * 97 10 0 65 65 92
 *
 */

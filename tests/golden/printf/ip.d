/* NAME %C shows what cannot be printed as an escape
 * OPTIONS -q
 */
BEGIN
{
	printf("%C%C%C\n", 'a', '\n', '\001');
	exit(0);
}
/* EXPECT
 * a\n\001
 *
 */

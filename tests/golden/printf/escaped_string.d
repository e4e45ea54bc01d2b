/* NAME %S shows what cannot be printed as an escape, the end of a string, too
 * OPTIONS -q
 */
BEGIN
{
	printf("%S\n", "a\tb\n");
	exit(0);
}
/* EXPECT
 * a\tb\n\0
 *
 */

/* NAME %S shows what cannot be printed as an escape
 * OPTIONS -q
 */
BEGIN
{
	printf("%S\n", "a\tb\n");
	exit(0);
}
/* EXPECT
 * a\tb\n
 *
 */

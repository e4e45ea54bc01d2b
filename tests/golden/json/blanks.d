/* NAME blanks between things do not matter
 * OPTIONS -q
 */
BEGIN
{
	printf("%s|\n", json(" { \"a\" :\t{ \"b\" : 7 } } ", "a.b"));
	exit(0);
}
/* EXPECT
 * 7|
 *
 */

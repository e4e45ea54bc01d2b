/* NAME trunc() takes how many to keep from any expression
 * OPTIONS -q
 */
BEGIN
{
	n = 2;
	@[1] = sum(10);
	@[2] = sum(20);
	@[3] = sum(30);
	trunc(@, n);
	exit(0);
}
/* EXPECT
 *
 *         2               20
 *         3               30
 */

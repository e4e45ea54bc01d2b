/* NAME each round of a loop aggregates
 * OPTIONS -q
 */
BEGIN
{
	for (i = 1; i <= 3; i++)
		@[i] = sum(i * 10);
	exit(0);
}
/* EXPECT
 *
 *         1               10
 *         2               20
 *         3               30
 */

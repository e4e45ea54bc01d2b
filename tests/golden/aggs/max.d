/* NAME max() keeps the largest, with sign
 * OPTIONS -q
 */
BEGIN
{
	@s = max(-10);
	@s = max(-30);
	exit(0);
}
/* EXPECT
 *
 *               -10
 */

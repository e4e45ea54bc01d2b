/* NAME a clause that records nothing is no row
 * OPTIONS
 */
BEGIN
{
	x = 1;
}
BEGIN
{
	@total = count();
	exit(0);
}
/* EXPECT
 * CPU     ID                    FUNCTION:NAME
 *   0      1                           :BEGIN $
 *
 *                 1
 */

/* NAME every clause that records is a row
 * OPTIONS
 */
BEGIN
{
	trace(1);
	trace("two");
}
BEGIN
{
	printf("three");
	exit(0);
}
/* EXPECT
 * CPU     ID                    FUNCTION:NAME
 *   0      1                           :BEGIN         1  two                              $
 *   0      1                           :BEGIN three
 *
 */

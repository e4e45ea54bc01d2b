/* NAME a row ends in a newline of its own
 * OPTIONS
 */
BEGIN
{
	printf("text %d", 1);
	exit(0);
}
/* EXPECT
 * CPU     ID                    FUNCTION:NAME
 *   0      1                           :BEGIN text 1
 *
 */

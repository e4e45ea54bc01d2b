/* NAME records of a clause stand in one row
 * OPTIONS
 */
BEGIN
{
	printf("a");
	printf("b");
	exit(0);
}
/* EXPECT
 * CPU     ID                    FUNCTION:NAME
 *   0      1                           :BEGIN ab
 *
 */

/* NAME an option pragma may follow clauses
 * OPTIONS
 */
BEGIN
{
	printf("quiet\n");
	exit(0);
}
#pragma D option quiet
/* EXPECT
 * quiet
 *
 */

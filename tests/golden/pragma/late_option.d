/* NAME an option pragma may follow clauses
 * OPTIONS
 * SKIP does not compile: inlines nest too deeply
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

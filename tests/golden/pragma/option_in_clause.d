/* NAME an option may be set from inside a clause
 */
BEGIN
{
#pragma D option quiet
	printf("quiet\n");
	exit(0);
}
/* EXPECT
 * quiet
 *
 */

/* NAME #pragma D option quiet is -q
 * OPTIONS
 */
#pragma D option quiet
BEGIN
{
	printf("quiet\n");
	exit(0);
}
/* EXPECT
 * quiet
 *
 */

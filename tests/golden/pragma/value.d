/* NAME an option with a value
 * OPTIONS
 */
#pragma D option quiet
#pragma D option strsize=32
BEGIN
{
	printf("%d\n", sizeof (execname));
	exit(0);
}
/* EXPECT
 * 32
 *
 */

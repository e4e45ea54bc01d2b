/* NAME an option with a value
 * OPTIONS
 * SKIP does not compile: inlines nest too deeply
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

/* NAME cpu is the CPU of the firing
 * OPTIONS -q
 */
BEGIN
{
	printf("%d\n", cpu >= 0 && cpu < 4096);
	exit(0);
}
/* EXPECT
 * 1
 *
 */

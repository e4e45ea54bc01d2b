/* NAME a process descends from itself, not from what does not exist
 * OPTIONS -q
 */
BEGIN
{
	printf("%d\n", progenyof(12345678));
	exit(0);
}
/* EXPECT
 * 0
 *
 */

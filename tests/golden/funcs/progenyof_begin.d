/* NAME BEGIN is of the command itself, which descends from all of its ancestors
 * OPTIONS -q
 */
BEGIN
{
	printf("%d %d %d\n", progenyof($pid), progenyof($ppid), progenyof(-1));
	exit(0);
}
/* EXPECT
 * 1 1 0
 *
 */

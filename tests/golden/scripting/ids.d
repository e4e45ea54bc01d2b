/* NAME macro variables of this process
 * OPTIONS -q
 */
BEGIN
{
	printf("%d %d %d %d\n", $pid > 0, $ppid > 0, $uid == $euid, $gid == $egid);
	printf("%d\n", $pgid + $sid + $projid + $taskid > 0);
	exit(0);
}
/* EXPECT
 * 1 1 1 1
 * 1
 *
 */

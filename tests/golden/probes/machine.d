/* NAME an empty machine field, or one that matches anything, is every machine, and none
 * OPTIONS -q
 */
:dtrace:::BEGIN,
*:dtrace:::BEGIN
{
	printf("[%s] %d %d\n", vmname, vmid, vmpid);
}
BEGIN
{
	exit(0);
}
/* EXPECT
 * [] 0 0
 * [] 0 0
 *
 */

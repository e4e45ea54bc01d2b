/* NAME only the low eight bits of the status reach the shell
 * EXIT 44
 * OPTIONS -q
 */
BEGIN
{
	exit(300);
}
/* EXPECT
 *
 */

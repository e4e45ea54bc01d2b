/* NAME only the low eight bits of the status reach the shell
 * EXIT 44
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
 */
BEGIN
{
	exit(300);
}
/* EXPECT
 *
 */

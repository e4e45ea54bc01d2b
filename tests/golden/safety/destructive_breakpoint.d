/* NAME breakpoint() needs -w
 * EXIT 1
 */
BEGIN
{
	breakpoint();
	exit(0);
}
/* STDERR
 * could not enable tracing: Destructive actions not allowed
 */

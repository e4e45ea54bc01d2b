/* NAME panic() needs -w
 * EXIT 1
 */
BEGIN
{
	panic();
	exit(0);
}
/* STDERR
 * could not enable tracing: Destructive actions not allowed
 */

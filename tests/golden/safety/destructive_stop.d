/* NAME stop() needs -w
 * EXIT 1
 */
BEGIN
{
	stop();
	exit(0);
}
/* STDERR
 * could not enable tracing: Destructive actions not allowed
 */

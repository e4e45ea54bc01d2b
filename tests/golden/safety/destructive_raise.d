/* NAME raise() needs -w
 * EXIT 1
 */
BEGIN
{
	raise(9);
	exit(0);
}
/* STDERR
 * could not enable tracing: Destructive actions not allowed
 */

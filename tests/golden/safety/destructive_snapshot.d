/* NAME snapshot() needs -w
 * EXIT 1
 */
BEGIN
{
	snapshot("x");
	exit(0);
}
/* STDERR
 * could not enable tracing: Destructive actions not allowed
 */

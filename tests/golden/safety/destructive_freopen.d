/* NAME freopen() needs -w
 * EXIT 1
 */
BEGIN
{
	freopen("x");
	exit(0);
}
/* STDERR
 * could not enable tracing: Destructive actions not allowed
 */

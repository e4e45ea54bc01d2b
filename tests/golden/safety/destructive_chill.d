/* NAME chill() needs -w
 * EXIT 1
 */
BEGIN
{
	chill(1);
	exit(0);
}
/* STDERR
 * could not enable tracing: Destructive actions not allowed
 */

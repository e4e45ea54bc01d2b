/* NAME system() needs -w
 * EXIT 1
 */
BEGIN
{
	system("true");
	exit(0);
}
/* STDERR
 * could not enable tracing: Destructive actions not allowed
 */

/* NAME copyout() needs -w
 * EXIT 1
 */
BEGIN
{
	copyout(alloca(1), 0, 1);
	exit(0);
}
/* STDERR
 * could not enable tracing: Destructive actions not allowed
 */

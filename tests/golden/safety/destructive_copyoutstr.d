/* NAME copyoutstr() needs -w
 * EXIT 1
 */
BEGIN
{
	copyoutstr("a", 0, 1);
	exit(0);
}
/* STDERR
 * could not enable tracing: Destructive actions not allowed
 */

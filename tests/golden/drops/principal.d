/* NAME records that do not fit are counted
 * OPTIONS -q -x bufsize=1k -x switchrate=10s -x bufresize=manual
 */
BEGIN
{
	this->p = (char *)alloca(400);
	tracemem(this->p, 400, 0);
}
BEGIN
{
	this->p = (char *)alloca(900);
	tracemem(this->p, 900, 0);
}
BEGIN
{
	exit(0);
}
/* EXPECT
 *
 */
/* STDERR
 * drop on CPU 0
 */

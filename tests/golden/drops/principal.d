/* NAME records that do not fit are counted
 * RUN $DTRACE -q -x bufsize=1k -x switchrate=10s -x bufresize=manual -s $SCRIPT >/dev/null
 */
BEGIN
{
	this->p = (char *)alloca(600);
	tracemem(this->p, 600);
}
BEGIN
{
	this->p = (char *)alloca(700);
	tracemem(this->p, 700);
}
BEGIN
{
	exit(0);
}
/* STDERR
 * 1 drop on CPU 0
 */

/* NAME #error fails
 * RUN $DTRACE -C -s $SCRIPT; echo $?
 */
#error stop here
BEGIN
{
	exit(0);
}
/* EXPECT
 * 1
 */
/* STDERR
 * stop here
 */

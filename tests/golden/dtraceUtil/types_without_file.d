/* NAME ctypes and dtypes need a file
 * RUN $DTRACE -x dtypes -s $SCRIPT; echo $?; $DTRACE -x ctypes= -s $SCRIPT; echo $?
 */
BEGIN
{
	exit(0);
}
/* EXPECT
 * 1
 * 1
 */
/* STDERR
 * dtypes
 * ctypes
 */

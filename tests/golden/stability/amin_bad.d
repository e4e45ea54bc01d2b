/* NAME amin needs attributes
 * RUN $DTRACE -x amin=Nonsense -s $SCRIPT; echo $?
 */
BEGIN { exit(0); }
/* EXPECT
 * 1
 */
/* STDERR
 * amin
 */

/* NAME the parts of a version are bounded
 * RUN $DTRACE -x version=256.0 -s $SCRIPT; echo $?; $DTRACE -x version=1.4096 -s $SCRIPT; echo $?
 */
BEGIN { exit(0); }
/* EXPECT
 * 1
 * 1
 */
/* STDERR
 * too large
 * too large
 */

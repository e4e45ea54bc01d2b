/* NAME aggrate in an unknown unit is an error
 * RUN $DTRACE -x aggrate=1fortnight -s $SCRIPT; echo $?
 */
BEGIN { exit(0); }
/* EXPECT
 * 1
 */
/* STDERR
 * failed to set -x aggrate
 */

/* NAME cleanrate in an unknown unit is an error
 * RUN $DTRACE -x cleanrate=1fortnight -s $SCRIPT; echo $?
 */
BEGIN { exit(0); }
/* EXPECT
 * 1
 */
/* STDERR
 * failed to set -x cleanrate
 */

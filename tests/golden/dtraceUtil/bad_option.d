/* NAME an option that does not exist is an error
 * RUN $DTRACE -x nowhere -n 'BEGIN { exit(0); }'; echo $?
 */

/* EXPECT
 * 1
 */
/* STDERR
 * failed to set -x nowhere
 */

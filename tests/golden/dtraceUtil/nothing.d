/* NAME without anything to do the command explains itself
 * RUN $DTRACE; echo $?
 */

/* EXPECT
 * 2
 */
/* STDERR
 * Usage:
 */

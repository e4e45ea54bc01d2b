/* NAME destructive actions need -w
 * RUN $DTRACE -n 'BEGIN { system("echo no"); exit(0); }'; echo $?
 */

/* EXPECT
 * 1
 */
/* STDERR
 * could not enable tracing
 * Destructive actions not allowed
 */

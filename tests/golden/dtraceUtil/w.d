/* NAME destructive actions need -w
 * RUN $DTRACE -n 'BEGIN { system("echo no"); exit(0); }'; echo $?
 * SKIP system() is not supported yet
 */

/* EXPECT
 * 1
 */
/* STDERR
 * could not enable tracing
 * destructive
 */

/* NAME destructive actions need -w
 * RUN $DTRACE -n 'BEGIN { system("echo no"); exit(0); }'; echo $?
 * SKIP does not compile: inlines nest too deeply
 */

/* EXPECT
 * 1
 */
/* STDERR
 * could not enable tracing
 * destructive
 */

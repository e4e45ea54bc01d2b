/* NAME bufresize is auto or manual
 * RUN for r in auto manual; do $DTRACE -q -x bufresize=$r -s $SCRIPT; done; $DTRACE -x bufresize=x -s $SCRIPT; echo $?
 */
BEGIN { printf("ok\n"); exit(0); }
/* EXPECT
 * ok
 *
 * ok
 *
 * 1
 */
/* STDERR
 * bufresize
 */

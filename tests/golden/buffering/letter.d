/* NAME -b is bufsize
 * RUN $DTRACE -q -b 64k -s $SCRIPT; $DTRACE -b nonsense -s $SCRIPT; echo $?
 */
BEGIN { printf("ok\n"); exit(0); }
/* EXPECT
 * ok
 *
 * 1
 */

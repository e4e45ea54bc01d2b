/* NAME a record larger than the buffer is a drop
 * RUN for p in switch ring; do $DTRACE -q -x droptags -x statusrate=10s -x strsize=200 -x bufsize=100 -x bufpolicy=$p -s $SCRIPT; echo $?; done
 */
BEGIN { trace("a"); }
BEGIN { exit(0); }
END { trace("b"); }
/* EXPECT
 *
 * 0
 *
 * 0
 */
/* STDERR
 * [DTRACEDROP_PRINCIPAL] 2 drops on CPU 0
 * [DTRACEDROP_PRINCIPAL] 2 drops on CPU 0
 */

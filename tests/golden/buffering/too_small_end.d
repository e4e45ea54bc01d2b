/* NAME records of END that no fill buffer can hold together are refused
 * RUN for p in switch ring fill; do $DTRACE -q -x bufpolicy=$p -b 16 -s $SCRIPT; echo $?; done
 */
BEGIN { exit(0); }
END { trace(1); }
END { trace(2); }
/* EXPECT
 * 1
 * 0
 * 2
 * 0
 * 1
 */
/* STDERR
 * 1 drop on CPU 0
 * could not enable tracing: Enabling exceeds size of buffer
 */

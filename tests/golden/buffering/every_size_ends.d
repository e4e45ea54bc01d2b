/* NAME however small the buffer, tracing is refused or ends with the status of exit()
 * RUN for p in switch ring; do for s in 1 11 16 17 20 23 24 28 31 32 36 40 48 64; do timeout 20 $DTRACE -q -x bufpolicy=$p -b $s -s $SCRIPT >out; n=$?; test $n = 1 || test $n = 3 || echo $p $s $n; done; done
 * TIMEOUT 120
 */
BEGIN { trace(1); }
BEGIN { trace(2); }
BEGIN { x = *(int *)0; trace(x); }
ERROR { trace(3); }
tick-1ms { trace(4); }
tick-1ms { n++; }
tick-2ms /n > 3/ { trace(5); exit(3); }
END { trace(6); }
END { trace(7); }
/* EXPECT
 */

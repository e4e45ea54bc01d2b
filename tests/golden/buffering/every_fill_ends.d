/* NAME however small a fill buffer, tracing is refused or ends when it is full
 * RUN for s in 1 16 31 32 36 40 48 56 64 80; do timeout 20 $DTRACE -q -x bufpolicy=fill -b $s -s $SCRIPT; echo " $?"; done
 * TIMEOUT 120
 */
BEGIN { trace(1); }
BEGIN { trace(2); }
BEGIN { x = *(int *)0; trace(x); }
ERROR { trace(3); }
tick-1ms { trace(4); }
END { trace(6); }
END { trace(7); }
/* EXPECT
 *  1
 *  1
 *  1
 * 67
 *  0
 * 67
 *  0
 * 67
 *  0
 * 167
 *  0
 * 167
 *  0
 * 1267
 *  0
 * 12367
 *  0
 */

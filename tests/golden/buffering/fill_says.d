/* NAME a fill buffer that is full is named
 * OPTIONS -q -x bufpolicy=fill -b 32
 */
tick-1ms { trace(1); }
END { trace(2); }
/* EXPECT
 * 12
 */
/* STDERR
 * the buffer of CPU 0 is full, which ends tracing (bufpolicy=fill)
 */

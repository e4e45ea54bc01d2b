/* NAME a number without a suffix is a frequency
 * RUN $DTRACE -qn 'tick-200 { exit(0); }'; echo $?
 */

/* EXPECT
 *
 * 0
 */

/* NAME a version that never was is an error
 * RUN $DTRACE -x version=99.9 -n 'BEGIN { exit(0); }'; echo $?
 */

/* EXPECT
 * 1
 */

/* NAME a rate in an unknown unit is an error
 * RUN $DTRACE -x switchrate=5parsec -n 'BEGIN { exit(0); }'; echo $?
 */

/* EXPECT
 * 1
 */
/* STDERR
 * switchrate
 */

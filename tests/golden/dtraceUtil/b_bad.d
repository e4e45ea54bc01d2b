/* NAME a size that is none is an error
 * RUN $DTRACE -b much -n 'BEGIN { exit(0); }'; echo $?
 */

/* EXPECT
 * 1
 */

/* NAME -e reports what does not compile
 * RUN $DTRACE -e -n 'BEGIN { nowhere(); }'; echo $?
 */

/* EXPECT
 * 1
 */
/* STDERR
 * undefined function name: nowhere
 */

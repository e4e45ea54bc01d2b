/* NAME nothing destructive runs without -w
 * RUN $DTRACE -n 'BEGIN { panic(); }'; echo $?
 */

/* EXPECT
 * 1
 */

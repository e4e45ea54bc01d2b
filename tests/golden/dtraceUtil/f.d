/* NAME -f of a function that does not exist is an error
 * RUN $DTRACE -f nowhere; echo $?
 */

/* EXPECT
 * 1
 */

/* NAME -m of a module that does not exist is an error
 * RUN $DTRACE -m nowhere; echo $?
 */

/* EXPECT
 * 1
 */

/* NAME -i of a probe that does not exist is an error
 * RUN $DTRACE -i 99999999; echo $?
 */

/* EXPECT
 * 1
 */

/* NAME a flag that does not exist is a usage error
 * RUN $DTRACE -j; echo $?
 */

/* EXPECT
 * 2
 */

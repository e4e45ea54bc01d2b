/* NAME a script that does not exist is an error
 * RUN $DTRACE -s nowhere.d; echo $?
 */

/* EXPECT
 * 1
 */
/* STDERR
 * nowhere.d
 */

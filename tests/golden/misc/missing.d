/* NAME a script that is not there is an error
 * RUN $DTRACE -s nowhere.d; echo $?
 */
BEGIN { exit(0); }
/* EXPECT
 * 1
 */
/* STDERR
 * nowhere.d
 */

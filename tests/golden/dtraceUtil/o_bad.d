/* NAME a file that cannot be written is an error
 * RUN $DTRACE -qo /nowhere/out -n 'BEGIN { exit(0); }'; echo $?
 */

/* EXPECT
 * 1
 */

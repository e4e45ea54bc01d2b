/* NAME a policy that does not exist is an error
 * RUN $DTRACE -x bufpolicy=round -n 'BEGIN { exit(0); }'; echo $?
 */

/* EXPECT
 * 1
 */

/* NAME -e compiles only
 * RUN $DTRACE -e -n 'BEGIN { printf("never"); }'; echo $?
 */

/* EXPECT
 * 0
 */

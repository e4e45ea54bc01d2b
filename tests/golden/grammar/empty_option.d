/* NAME -x empty allows a program without clauses
 * RUN $DTRACE -x empty -e -s $SCRIPT; echo $?
 */
int number;
/* EXPECT
 * 0
 */

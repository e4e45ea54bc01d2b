/* NAME with -e, no program is nothing to complain about
 * RUN $DTRACE -e; echo $?; $DTRACE -eq -x strsize=10; echo $?
 */
/* EXPECT
 * 0
 * 0
 */

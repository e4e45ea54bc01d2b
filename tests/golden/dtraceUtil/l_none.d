/* NAME -l of what matches nothing is an error
 * RUN $DTRACE -ln nothing:::; echo $?
 */

/* EXPECT
 *    ID   PROVIDER            MODULE                          FUNCTION NAME
 * 1
 */

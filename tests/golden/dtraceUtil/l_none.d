/* NAME -l of what matches nothing prints the header, and fails
 * RUN $DTRACE -ln nothing:::; echo $?
 */

/* EXPECT
 *    ID   PROVIDER            MODULE                          FUNCTION NAME
 * 1
 */
/* STDERR
 * failed to match nothing:::: No probe matches description
 */

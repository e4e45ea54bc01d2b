/* NAME -l of what matches nothing prints the header alone
 * RUN $DTRACE -ln nothing:::; echo $?
 * SKIP prints 1
 */

/* EXPECT
 *    ID   PROVIDER            MODULE                          FUNCTION NAME
 * 0
 */
/* STDERR
 * failed to match nothing:::: No probe matches description
 */

/* NAME -l lists probes
 * RUN $DTRACE -l -P dtrace
 */

/* EXPECT
 *    ID   PROVIDER            MODULE                          FUNCTION NAME
 *     1     dtrace                                                     BEGIN
 *     2     dtrace                                                     END
 *     3     dtrace                                                     ERROR
 */

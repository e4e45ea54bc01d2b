/* NAME -l -n lists what a description matches
 * RUN $DTRACE -ln 'dtrace:::E*'
 */

/* EXPECT
 *    ID   PROVIDER            MODULE                          FUNCTION NAME
 *     2     dtrace                                                     END
 *     3     dtrace                                                     ERROR
 */

/* NAME a description on the command line needs no body
 * RUN $DTRACE -n BEGIN -n 'BEGIN { exit(0); }'
 */

/* EXPECT
 * CPU     ID                    FUNCTION:NAME
 *   0      1                           :BEGIN $
 *   0      1                           :BEGIN $
 *
 */

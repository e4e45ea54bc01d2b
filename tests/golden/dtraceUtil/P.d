/* NAME -P enables all probes of a provider
 * RUN $DTRACE -P dtrace -n 'BEGIN { exit(0); }'
 */

/* EXPECT
 * CPU     ID                    FUNCTION:NAME
 *   0      1                           :BEGIN $
 *   0      1                           :BEGIN $
 *   0      2                             :END $
 *
 */

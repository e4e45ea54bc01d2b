/* NAME -i takes a description, too
 * RUN $DTRACE -q -i 'BEGIN { printf("%d\n", id); exit(0); }'
 */

/* EXPECT
 * 1
 *
 */

/* NAME -i enables a probe by its number
 * RUN $DTRACE -q -i '1 { printf("one\n"); exit(0); }'
 */

/* EXPECT
 * one
 *
 */

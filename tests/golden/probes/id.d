/* NAME a probe may be named by its number
 * RUN $DTRACE -q -n '1 { printf("%s\n", probename); exit(0); }'
 */

/* EXPECT
 * BEGIN
 *
 */

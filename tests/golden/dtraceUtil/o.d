/* NAME -o writes to a file
 * RUN $DTRACE -qo out -n 'BEGIN { printf("text\n"); exit(0); }'; cat out
 */

/* EXPECT
 * text
 *
 */

/* NAME -o appends
 * RUN echo first > out; $DTRACE -qo out -n 'BEGIN { printf("text\n"); exit(0); }'; cat out
 */

/* EXPECT
 * first
 * text
 *
 */

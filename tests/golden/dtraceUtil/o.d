/* NAME -o writes to a file
 * RUN $DTRACE -qo out -n 'BEGIN { printf("text\n"); exit(0); }'; cat out
 * SKIP does not compile: inlines nest too deeply
 */

/* EXPECT
 * text
 *
 */

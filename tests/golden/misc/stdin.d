/* NAME a script comes from standard input as -
 * RUN $DTRACE -q -s /dev/stdin < $SCRIPT
 */
BEGIN { printf("read\n"); exit(0); }
/* EXPECT
 * read
 *
 */

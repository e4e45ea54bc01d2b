/* NAME -p takes a number with blanks before it, as scripts pass "-p 123" in one word
 * RUN sleep 100 & $DTRACE -q "-p $!" -n 'BEGIN { printf("%d\n", $target == $1); exit(0); }' $!; kill $!
 */
/* EXPECT
 * 1
 *
 */

/* NAME a size must be a number with k, m, g or t
 * RUN for s in x 1x k 1kk; do $DTRACE -x bufsize=$s -s $SCRIPT; echo $?; done
 */
BEGIN { exit(0); }
/* EXPECT
 * 1
 * 1
 * 1
 * 1
 */
/* STDERR
 * bufsize
 * bufsize
 * bufsize
 * bufsize
 */

/* NAME records that no buffer can hold are refused before tracing starts
 * RUN for p in switch ring fill; do for s in 1 4 12 15; do $DTRACE -q -x bufpolicy=$p -b $s -s $SCRIPT; echo $?; done; done
 */
BEGIN { exit(0); }
/* EXPECT
 * 1
 * 1
 * 1
 * 1
 * 1
 * 1
 * 1
 * 1
 * 1
 * 1
 * 1
 * 1
 */
/* STDERR
 * could not enable tracing: Enabling exceeds size of buffer
 * could not enable tracing: Enabling exceeds size of buffer
 */

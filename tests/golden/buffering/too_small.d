/* NAME records that no buffer can hold are refused before tracing starts with fill, else dropped
 * RUN for p in switch ring fill; do for s in 1 4 12 15; do $DTRACE -q -x bufpolicy=$p -b $s -s $SCRIPT; echo $?; done; done
 */
BEGIN { exit(0); }
/* EXPECT
 *
 * 0
 *
 * 0
 *
 * 0
 *
 * 0
 *
 * 0
 *
 * 0
 *
 * 0
 *
 * 0
 * 1
 * 1
 * 1
 * 1
 */
/* STDERR
 * 1 drop on CPU 0
 * could not enable tracing: Enabling exceeds size of buffer
 */

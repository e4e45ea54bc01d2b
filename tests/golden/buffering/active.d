/* NAME buffers keep their size while tracing
 * OPTIONS -q
 */
BEGIN { setopt("bufsize", "1m"); exit(0); }
/* EXPECT
 *
 */
/* STDERR
 * couldn't set option "bufsize" to "1m"
 */

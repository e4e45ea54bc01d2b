/* NAME ERROR may end tracing
 * EXIT 3  OPTIONS -q
 */
int z;
BEGIN { trace(1 / z); }
ERROR { exit(3); }
/* EXPECT
 *
 */
/* STDERR
 * divide-by-zero
 */

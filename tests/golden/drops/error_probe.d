/* NAME faults in ERROR are counted
 * OPTIONS -q
 */
int z;
BEGIN { trace(1 / z); }
BEGIN { exit(0); }
ERROR { trace(1 / z); }
/* EXPECT
 *
 */
/* STDERR
 * error in ERROR probe enabling
 */

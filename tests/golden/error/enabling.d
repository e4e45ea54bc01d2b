/* NAME arg1 is the enabling that failed
 * OPTIONS -q
 */
int z;
BEGIN { x = 1; }
BEGIN { trace(1 / z); }
BEGIN { exit(0); }
ERROR { printf("%d\n", arg1); }
/* EXPECT
 * 2
 *
 */
/* STDERR
 * error on enabled probe ID 2
 */

/* NAME the action is counted from 1
 * OPTIONS -q
 */
int z;
BEGIN { trace(1); trace(1 / z); }
BEGIN { exit(0); }
ERROR { printf("%d %d\n", arg2, arg4); }
/* EXPECT
 * 2 4
 *
 */
/* STDERR
 * divide-by-zero in action #2
 */

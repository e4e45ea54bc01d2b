/* NAME each fault fires ERROR once
 * OPTIONS -q
 */
int z;
BEGIN { trace(1 / z); }
BEGIN { trace(2 / z); }
BEGIN { exit(0); }
ERROR { n++; }
END { printf("%d\n", n); }
/* EXPECT
 * 2
 *
 */
/* STDERR
 * divide-by-zero
 * divide-by-zero
 */

/* NAME END sees what other probes left
 * OPTIONS -q
 */
BEGIN { x = 3; }
tick-10ms { x++; exit(0); }
END { printf("%d\n", x); }
/* EXPECT
 * 4
 *
 */

/* NAME setopt() changes a rate while tracing
 * OPTIONS -q -x switchrate=10s
 */
BEGIN { setopt("switchrate", "1ms"); setopt("aggrate", "1ms"); printf("a\n"); }
tick-20ms { exit(0); }
/* EXPECT
 * a
 *
 */

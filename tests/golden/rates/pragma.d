/* NAME #pragma D option sets a rate
 */
#pragma D option quiet
#pragma D option switchrate=5ms
#pragma D option statusrate=10ms
BEGIN { printf("a\n"); }
tick-20ms { exit(0); }
/* EXPECT
 * a
 *
 */

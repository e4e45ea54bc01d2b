/* NAME a fault in END is an error like any other
 * OPTIONS -q
 */
int x;
BEGIN { exit(0); }
END { trace(1 / x); }
END { printf("after\n"); }
/* EXPECT
 * after
 *
 */
/* STDERR
 * error on enabled probe ID 2 (ID 2: dtrace:::END): divide-by-zero in action #1
 */

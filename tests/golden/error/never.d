/* NAME without a fault ERROR does not fire
 * OPTIONS -q
 */
BEGIN { exit(0); }
ERROR { printf("no\n"); }
/* EXPECT
 *
 */

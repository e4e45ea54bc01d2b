/* NAME a program may be one line
 * OPTIONS -q
 */
BEGIN { x = 1; } BEGIN { printf("%d\n", x); exit(0); }
/* EXPECT
 * 1
 *
 */

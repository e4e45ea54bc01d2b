/* NAME the last statement needs no semicolon
 * OPTIONS -q
 */
BEGIN { printf("a\n"); exit(0) }
/* EXPECT
 * a
 *
 */

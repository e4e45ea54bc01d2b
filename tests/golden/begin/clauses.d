/* NAME clauses of BEGIN run in the order of the program, until exit()
 * OPTIONS -q
 */
BEGIN { printf("1\n"); }
BEGIN { printf("2\n"); }
dtrace:::BEGIN { printf("3\n"); exit(0); }
/* EXPECT
 * 1
 * 2
 * 3
 *
 */

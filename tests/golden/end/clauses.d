/* NAME clauses of END run in the order of the program
 * OPTIONS -q
 */
BEGIN { exit(0); }
END { printf("1\n"); }
END { printf("2\n"); }
/* EXPECT
 * 1
 * 2
 *
 */

/* NAME exit() in BEGIN keeps all but END from firing
 * OPTIONS -q
 */
BEGIN { exit(0); }
tick-5000hz { printf("tick\n"); }
END { printf("end\n"); }
/* EXPECT
 * end
 *
 */

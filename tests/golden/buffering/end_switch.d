/* NAME with switch the records of END are there
 * OPTIONS -q -x bufpolicy=switch -x bufsize=64k
 */
BEGIN { printf("begin\n"); exit(0); }
END { printf("end\n"); }
/* EXPECT
 * begin
 * end
 *
 */

/* NAME with ring the records of END are there
 * OPTIONS -q -x bufpolicy=ring -x bufsize=64k
 */
BEGIN { printf("begin\n"); exit(0); }
END { printf("end\n"); }
/* EXPECT
 * begin
 * end
 *
 */

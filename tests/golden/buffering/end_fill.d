/* NAME with fill the records of END are there
 * OPTIONS -q -x bufpolicy=fill -x bufsize=64k
 */
BEGIN { printf("begin\n"); exit(0); }
END { printf("end\n"); }
/* EXPECT
 * begin
 * end
 *
 */

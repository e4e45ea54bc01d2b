/* NAME with a ring buffer everything is printed at the end
 * OPTIONS -q -x bufpolicy=ring
 */
BEGIN
{
	printf("begin\n");
}
tick-5ms
{
	printf("tick\n");
	exit(0);
}
END
{
	printf("end\n");
}
/* EXPECT
 * begin
 * tick
 * end
 *
 */

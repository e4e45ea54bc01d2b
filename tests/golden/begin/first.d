/* NAME BEGIN fires before any other probe
 * OPTIONS -q
 */
tick-1ms
{
	printf("tick\n");
	exit(0);
}
BEGIN
{
	printf("begin\n");
}
/* EXPECT
 * begin
 * tick
 *
 */

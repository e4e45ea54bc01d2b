/* NAME BEGIN fires before any other probe
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
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

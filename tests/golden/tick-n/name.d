/* NAME a tick keeps the name that it was given
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
 */
tick-1ms
{
	printf("%s\n", probename);
	exit(0);
}
/* EXPECT
 * tick-1ms
 *
 */

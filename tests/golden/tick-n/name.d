/* NAME a tick keeps the name that it was given
 * OPTIONS -q
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

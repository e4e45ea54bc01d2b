/* NAME the names of the probe that fired
 * OPTIONS -q
 */
tick-1ms
{
	printf("[%s] [%s] [%s] [%s]\n", probeprov, probemod, probefunc, probename);
	exit(0);
}
/* EXPECT
 * [profile] [] [] [tick-1ms]
 *
 */

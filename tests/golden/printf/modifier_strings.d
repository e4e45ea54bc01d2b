/* NAME strings of built-in variables
 * OPTIONS -q
 */
BEGIN
{
	printf("%s:%s:%s:%s|%10s|%-7s|\n", probeprov, probemod, probefunc, probename, probename, probename);
	exit(0);
}
/* EXPECT
 * dtrace:::BEGIN|     BEGIN|BEGIN  |
 *
 */

/* NAME BEGIN names itself
 * OPTIONS -q
 */
BEGIN
{
	printf("%s:%s:%s:%s %d\n", probeprov, probemod, probefunc, probename, id);
	exit(0);
}
/* EXPECT
 * dtrace:::BEGIN 1
 *
 */

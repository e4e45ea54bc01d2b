/* NAME ERROR names itself
 * OPTIONS -q
 */
ERROR
{
	printf("%s:%s:%s:%s %d\n", probeprov, probemod, probefunc, probename, id);
	exit(0);
}
BEGIN
{
	x = *(char *)0;
}
/* EXPECT
 * dtrace:::ERROR 3
 *
 */

/* NAME END names itself
 * OPTIONS -q
 */
BEGIN
{
	exit(0);
}
END
{
	printf("%s:%s:%s:%s %d\n", probeprov, probemod, probefunc, probename, id);
}
/* EXPECT
 * dtrace:::END 2
 *
 */

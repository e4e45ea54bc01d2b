/* NAME END names itself
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
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

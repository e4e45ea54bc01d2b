/* NAME a profile probe has its name as it was written
 * OPTIONS -q
 */
profile:::profile-10ms
{
	printf("%s:%s:%s:%s\n", probeprov, probemod, probefunc, probename);
	exit(0);
}
/* EXPECT
 * profile:::profile-10ms
 *
 */

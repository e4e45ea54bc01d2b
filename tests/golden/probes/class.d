/* NAME [] matches one of several characters
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
 */
dtrace:::[A-C]EGIN
{
	printf("%s\n", probename);
	exit(0);
}
/* EXPECT
 * BEGIN
 *
 */

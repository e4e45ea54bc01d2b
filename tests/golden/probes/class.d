/* NAME [] matches one of several characters
 * OPTIONS -q
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

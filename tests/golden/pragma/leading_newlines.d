/* NAME in a description of the command line, newlines and blanks may come before a pragma
 * RUN $DTRACE -n "$(printf '\n\n \t#pragma D option quiet\n'; cat $SCRIPT)"
 */
BEGIN
{
	printf("ok\n");
	exit(0);
}
/* EXPECT
 * ok
 *
 */

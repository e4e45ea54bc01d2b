/* NAME freopen() sends the output to a file and back
 * RUN $DTRACE -qws $SCRIPT; cat out
 */
BEGIN
{
	printf("one\n");
	freopen("out");
	printf("two\n");
	freopen("");
	printf("three\n");
	exit(0);
}
/* EXPECT
 * one
 * three
 *
 * two
 */

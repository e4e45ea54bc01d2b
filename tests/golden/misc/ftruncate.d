/* NAME ftruncate() empties the output file
 * RUN $DTRACE -qo out -s $SCRIPT; cat out
 */
BEGIN
{
	printf("one\n");
	ftruncate();
	printf("two\n");
	exit(0);
}
/* EXPECT
 * two
 *
 */

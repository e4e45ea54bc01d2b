/* NAME ftruncate() empties the output file
 * RUN $DTRACE -qo out -s $SCRIPT; cat out
 * SKIP ftruncate() is not supported yet
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

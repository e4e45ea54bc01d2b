/* NAME ftruncate() empties the output file
 * RUN $DTRACE -qo out -s $SCRIPT; cat out
 * SKIP does not compile: inlines nest too deeply
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

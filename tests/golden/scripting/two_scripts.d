/* NAME several -s and -n run together, in order
 * RUN $DTRACE -qs $SCRIPT -n 'BEGIN { printf("two\n"); exit(0); }'
 * SKIP does not compile: inlines nest too deeply
 */
BEGIN
{
	printf("one\n");
}
/* EXPECT
 * one
 * two
 *
 */

/* NAME several -s and -n run together, in order
 * RUN $DTRACE -qs $SCRIPT -n 'BEGIN { printf("two\n"); exit(0); }'
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

/* NAME several characters make one integer, the first one highest
 * OPTIONS -q
 * SKIP prints 6261 64636261
 */
BEGIN
{
	printf("%x %x\n", 'ab', 'abcd');
	exit(0);
}
/* EXPECT
 * 6162 61626364
 *
 */

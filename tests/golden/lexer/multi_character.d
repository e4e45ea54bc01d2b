/* NAME several characters make one integer, laid out as in memory
 * OPTIONS -q
 */
BEGIN
{
	printf("%x %x\n", 'ab', 'abcd');
	exit(0);
}
/* EXPECT
 * 6261 64636261
 *
 */

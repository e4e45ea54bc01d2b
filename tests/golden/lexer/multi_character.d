/* NAME several characters make one integer, the first one highest
 * OPTIONS -q
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

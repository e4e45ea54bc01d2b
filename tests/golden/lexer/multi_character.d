/* NAME several characters make one integer, the last one its lowest byte
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

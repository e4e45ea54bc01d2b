/* NAME division of unsigned values is unsigned
 * OPTIONS -q
 */
BEGIN
{
	x = (uint64_t)0xfffffffffffffffe;
	y = (uint64_t)2;
	printf("%x\n", x / y);
	exit(0);
}
/* EXPECT
 * 7fffffffffffffff
 *
 */

/* NAME size prefixes are accepted
 * OPTIONS -q
 */
BEGIN
{
	printf("%hd %ld %lld %hu %lx %llx\n", (short)1, (long)2, (long long)3, (ushort_t)4, 5UL, 6ULL);
	exit(0);
}
/* EXPECT
 * 1 2 3 4 5 6
 *
 */

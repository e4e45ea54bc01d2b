/* NAME decimal, octal and hex constants with suffixes
 * OPTIONS -q
 */
BEGIN
{
	printf("%d %d %d %d %d %d %d\n", 10, 010, 0x10, 10L, 10UL, 10ull, 0XfF);
	exit(0);
}
/* EXPECT
 * 10 8 16 10 10 10 255
 *
 */

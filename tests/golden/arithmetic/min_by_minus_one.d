/* NAME the smallest number divided by -1 stays what it is
 * OPTIONS -q
 */
BEGIN
{
	x = (int64_t)0x8000000000000000;
	y = (int64_t)-1;
	printf("%d\n", x / y);
	exit(0);
}
/* EXPECT
 * -9223372036854775808
 *
 */

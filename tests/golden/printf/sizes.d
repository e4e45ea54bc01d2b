/* NAME the conversion takes its size from the argument
 * OPTIONS -q
 */
BEGIN
{
	printf("%d %d %d %d %x\n", (char)-1, (short)-2, -3, (long long)-4, (char)-1);
	exit(0);
}
/* EXPECT
 * -1 -2 -3 -4 ff
 *
 */

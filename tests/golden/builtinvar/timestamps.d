/* NAME timestamp stands still within a clause, walltimestamp knows the time
 * OPTIONS -q
 */
BEGIN
{
	a = timestamp;
	b = timestamp;
	printf("%d %d %d\n", a == b, a > 0, walltimestamp > 1500000000000000000);
	exit(0);
}
/* EXPECT
 * 1 1 1
 *
 */

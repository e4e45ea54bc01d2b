/* NAME a loop ends at its condition or at its limit
 * OPTIONS -q
 */
BEGIN
{
	n = 3;
	while (n > 0; 10)
		n--;
	while (1; 4)
		m++;
	printf("%d %d\n", n, m);
	exit(0);
}
/* EXPECT
 * 0 4
 *
 */

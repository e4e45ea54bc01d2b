/* NAME loops may stand in one another
 * OPTIONS -q
 */
BEGIN
{
	for (i = 0; i < 2; i++)
		for (j = 2; j > 0; j--)
			printf("%d %d\n", i, j);
	exit(0);
}
/* EXPECT
 * 0 2
 * 0 1
 * 1 2
 * 1 1
 *
 */

/* NAME several ifs in one clause
 * OPTIONS -q
 */
BEGIN
{
	i = 0;
	if (i == 0) { i = 1; }
	if (i == 1) { i = 2; }
	if (i == 1) { i = 9; } else { i = i + 1; }
	printf("%d\n", i);
	exit(0);
}
/* EXPECT
 * 3
 *
 */

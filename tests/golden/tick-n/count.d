/* NAME tick-N fires again and again
 * OPTIONS -q
 */
tick-5ms
{
	i++;
}
tick-5ms
/ i == 3 /
{
	printf("%d\n", i);
	exit(0);
}
/* EXPECT
 * 3
 *
 */

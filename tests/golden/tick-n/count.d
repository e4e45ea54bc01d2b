/* NAME tick-N fires again and again
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
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

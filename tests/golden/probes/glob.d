/* NAME * and ? match names
 * OPTIONS -q
 */
dtrace:::BE*, dtrace:::E?D
{
	printf("%s\n", probename);
	exit(0);
}
/* EXPECT
 * BEGIN
 * END
 *
 */

/* NAME * and ? match names
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
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

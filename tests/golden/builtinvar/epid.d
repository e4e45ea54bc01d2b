/* NAME epid numbers the clauses that were enabled, id the probe
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
 */
BEGIN
{
	printf("%d %d\n", epid, id);
}
BEGIN
{
	printf("%d %d\n", epid, id);
	exit(0);
}
/* EXPECT
 * 1 1
 * 2 1
 *
 */

/* NAME epid numbers the clauses that were enabled, id the probe
 * OPTIONS -q
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

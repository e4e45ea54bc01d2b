/* NAME an aggregation without keys prints its value alone
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
 */
BEGIN
{
	@ = count();
	@ = count();
	exit(0);
}
/* EXPECT
 *
 *                 2
 */

/* NAME an aggregation without keys prints its value alone
 * OPTIONS -q
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

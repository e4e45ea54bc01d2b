/* NAME all aggregations must be there
 * TAG D_PRINTA_AGGBAD
 */
BEGIN
{
	@a = count();
	printa("%@d %@d\n", @a, @b);
}

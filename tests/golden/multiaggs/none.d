/* NAME printa() needs an aggregation
 * TAG D_PRINTA_PROTO
 */
BEGIN
{
	printa("x");
}

/* NAME printa() needs an aggregation behind the format
 * TAG D_PRINTA_PROTO
 */
BEGIN
{
	printa("%d\n");
}

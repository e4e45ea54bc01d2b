/* NAME printa() needs an aggregation after the format
 * TAG D_PRINTA_PROTO
 */
BEGIN
{
	printa("%d\n");
}

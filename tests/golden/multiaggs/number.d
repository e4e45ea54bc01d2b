/* NAME printa() takes aggregations behind its format
 * TAG D_PRINTA_AGGARG
 */
BEGIN
{
	@a = count();
	printa("%@d\n", 1);
}

/* NAME printa() takes aggregations after its format
 * TAG D_PRINTA_AGGARG
 */
BEGIN
{
	@a = count();
	printa("%@d\n", 1);
}

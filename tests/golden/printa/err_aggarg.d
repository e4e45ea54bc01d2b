/* NAME printa() takes an aggregation
 * TAG D_PRINTA_AGGARG
 */
BEGIN
{
	printa(1);
}

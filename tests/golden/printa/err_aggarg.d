/* NAME printa() takes an aggregation
 * TAG D_PRINTA_AGGARG
 * SKIP the command says D_PRINTA_AGGBAD instead
 */
BEGIN
{
	printa(1);
}

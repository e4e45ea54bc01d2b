/* NAME printa() takes an aggregation that exists
 * TAG D_PRINTA_AGGBAD
 */
BEGIN
{
	printa(@nowhere);
}

/* NAME trunc() takes an aggregation that exists
 * TAG D_TRUNC_AGGBAD
 */
BEGIN
{
	trunc(@nowhere);
}

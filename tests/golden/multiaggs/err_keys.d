/* NAME aggregations that are printed together have the same keys
 * TAG D_PRINTA_AGGPROTO
 */
BEGIN
{
	@n["a"] = count();
	@t[1] = count();
	printa(@n, @t);
}

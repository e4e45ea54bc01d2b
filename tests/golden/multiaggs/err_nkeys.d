/* NAME aggregations that are printed together have as many keys
 * TAG D_PRINTA_AGGPROTO
 */
BEGIN
{
	@n["a"] = count();
	@t["a", 1] = count();
	printa(@n, @t);
}

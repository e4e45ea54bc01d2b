/* NAME aggregations that are printed together have as many keys
 * TAG D_PRINTA_AGGKEY
 * SKIP the command says D_PRINTA_AGGPROTO instead
 */
BEGIN
{
	@n["a"] = count();
	@t["a", 1] = count();
	printa(@n, @t);
}

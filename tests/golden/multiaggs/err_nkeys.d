/* NAME aggregations that are printed together have as many keys
 * TAG D_PRINTA_AGGKEY
 */
BEGIN
{
	@n["a"] = count();
	@t["a", 1] = count();
	printa(@n, @t);
}

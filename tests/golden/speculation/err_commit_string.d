/* NAME commit() takes an integer
 * TAG D_PROTO_ARG
 * SKIP commit() is not supported yet
 */
BEGIN
{
	commit("one");
}

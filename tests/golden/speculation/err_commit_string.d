/* NAME commit() takes an integer
 * TAG D_PROTO_ARG
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	commit("one");
}

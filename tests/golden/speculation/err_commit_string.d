/* NAME commit() takes an integer
 * TAG D_PROTO_ARG
 */
BEGIN
{
	commit("one");
}

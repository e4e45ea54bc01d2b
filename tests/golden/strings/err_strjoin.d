/* NAME strjoin() takes strings
 * TAG D_PROTO_ARG
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	trace(strjoin("a", 1));
}

/* NAME strjoin() takes strings
 * TAG D_PROTO_ARG
 */
BEGIN
{
	trace(strjoin("a", 1));
}

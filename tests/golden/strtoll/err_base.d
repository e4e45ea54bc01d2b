/* NAME the base of strtoll() is a number
 * TAG D_PROTO_ARG
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	trace(strtoll("12", "ten"));
}

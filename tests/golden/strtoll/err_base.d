/* NAME the base of strtoll() is a number
 * TAG D_PROTO_ARG
 */
BEGIN
{
	trace(strtoll("12", "ten"));
}

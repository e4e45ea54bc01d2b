/* NAME an index of a built-in array is a number
 * TAG D_PROTO_ARG
 */
BEGIN
{
	trace(uregs["rax"]);
}

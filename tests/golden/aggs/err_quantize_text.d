/* NAME an increment is a number
 * TAG D_PROTO_ARG
 */
BEGIN
{
	@ = quantize(1, "x");
}

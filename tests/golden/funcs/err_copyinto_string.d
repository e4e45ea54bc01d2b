/* NAME copyinto() takes an address, no string
 * TAG D_PROTO_ARG
 */
BEGIN
{
	copyinto("1", 2, alloca(2));
}

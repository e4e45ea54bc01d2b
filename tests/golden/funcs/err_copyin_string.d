/* NAME copyin() takes an address, no string
 * TAG D_PROTO_ARG
 */
BEGIN
{
	copyin("1", 2);
}

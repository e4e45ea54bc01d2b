/* NAME copyinstr() takes an address, no string
 * TAG D_PROTO_ARG
 */
BEGIN
{
	copyinstr("x");
}

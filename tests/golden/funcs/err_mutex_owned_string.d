/* NAME mutex_owned() takes an address, no string
 * TAG D_PROTO_ARG
 */
BEGIN
{
	mutex_owned("x");
}

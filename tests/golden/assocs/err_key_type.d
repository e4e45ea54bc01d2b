/* NAME keys do not change their type
 * TAG D_PROTO_ARG
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	a[1] = 1;
	a["x"] = 2;
}

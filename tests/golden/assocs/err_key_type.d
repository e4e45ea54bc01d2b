/* NAME keys do not change their type
 * TAG D_PROTO_ARG
 */
BEGIN
{
	a[1] = 1;
	a["x"] = 2;
}

/* NAME keys do not change their number
 * TAG D_PROTO_LEN
 */
BEGIN
{
	a[1, 2] = 1;
	a[1] = 2;
}

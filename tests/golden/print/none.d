/* NAME print() takes a value
 * TAG D_PROTO_LEN
 */
BEGIN
{
	print();
}

/* NAME print() takes one argument
 * TAG D_PROTO_LEN
 */
BEGIN
{
	print();
}

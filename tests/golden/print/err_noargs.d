/* NAME print() takes one argument
 * TAG D_PROTO_LEN
 * SKIP print() is not supported yet
 */
BEGIN
{
	print();
}

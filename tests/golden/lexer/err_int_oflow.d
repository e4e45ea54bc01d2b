/* NAME an integer constant fits 64 bits
 * TAG D_INT_OFLOW
 */
BEGIN
{
	trace(0x12345678123456781);
}

/* NAME a built-in variable cannot be written
 * TAG D_OP_WRITE
 */
BEGIN
{
	timestamp = 1;
}

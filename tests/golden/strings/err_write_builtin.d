/* NAME characters of a built-in variable cannot be written
 * TAG D_OP_WRITE
 */
BEGIN
{
	execname[0] = 'x';
}

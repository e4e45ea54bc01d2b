/* NAME a variable without a type cannot be read and written
 * TAG D_OP_DYN
 */
BEGIN
{
	nowhere += "a";
}

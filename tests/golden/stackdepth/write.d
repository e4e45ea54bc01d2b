/* NAME stackdepth cannot be assigned
 * TAG D_OP_WRITE
 */
BEGIN
{
	stackdepth = 3;
}

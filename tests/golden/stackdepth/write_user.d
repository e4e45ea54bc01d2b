/* NAME ustackdepth cannot be assigned
 * TAG D_OP_WRITE
 */
BEGIN
{
	ustackdepth++;
}

/* NAME an argument that is not used is an error
 * TAG D_MACRO_UNUSED
 * ARGS one
 */
BEGIN
{
	exit(0);
}

/* NAME print() needs a value
 * TAG D_PRINT_VOID
 * SKIP print() is not supported yet
 */
BEGIN
{
	print((void)1);
}

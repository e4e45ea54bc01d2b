/* NAME print() needs a value
 * TAG D_PRINT_VOID
 */
BEGIN
{
	print((void)1);
}

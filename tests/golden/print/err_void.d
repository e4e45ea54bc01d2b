/* NAME print() needs a value
 * TAG D_PRINT_VOID
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	print((void)1);
}

/* NAME print() prints no aggregation
 * TAG D_PRINT_AGG
 * SKIP print() is not supported yet
 */
BEGIN
{
	@a = count();
	print(@a);
}

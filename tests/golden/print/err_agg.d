/* NAME print() prints no aggregation
 * TAG D_PRINT_AGG
 */
BEGIN
{
	@a = count();
	print(@a);
}

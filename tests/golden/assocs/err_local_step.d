/* NAME a clause-local name cannot become an array by ++ either
 * TAG D_ARR_LOCAL
 */
BEGIN
{
	this->a[1]++;
}

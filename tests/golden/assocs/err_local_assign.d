/* NAME a clause-local name cannot become an array by an assignment
 * TAG D_ARR_LOCAL
 */
BEGIN
{
	this->a[1] = 1;
}

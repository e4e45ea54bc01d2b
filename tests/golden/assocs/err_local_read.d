/* NAME reading does not make a clause-local name an array either
 * TAG D_ARR_LOCAL
 */
BEGIN
{
	trace(this->a[1]);
}

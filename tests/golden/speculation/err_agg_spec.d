/* NAME an aggregating action may not follow speculate()
 * TAG D_AGG_SPEC
 */
BEGIN
{
	this->s = speculation();
	speculate(this->s);
	@total = count();
}

/* NAME an aggregating action may not follow speculate()
 * TAG D_AGG_SPEC
 * SKIP speculate() is not supported yet
 */
BEGIN
{
	this->s = speculation();
	speculate(this->s);
	@total = count();
}

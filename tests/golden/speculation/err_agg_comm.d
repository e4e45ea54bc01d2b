/* NAME an aggregating action may not follow commit()
 * TAG D_AGG_COMM
 */
BEGIN
{
	this->s = speculation();
	commit(this->s);
	@total = count();
}

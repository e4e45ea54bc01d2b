/* NAME an aggregating action may not follow commit()
 * TAG D_AGG_COMM
 * SKIP commit() is not supported yet
 */
BEGIN
{
	this->s = speculation();
	commit(this->s);
	@total = count();
}

/* NAME what records data may not follow commit()
 * TAG D_DREC_COMM
 * SKIP commit() is not supported yet
 */
BEGIN
{
	this->s = speculation();
	commit(this->s);
	trace(1);
}

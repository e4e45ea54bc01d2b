/* NAME what records data may not follow commit()
 * TAG D_DREC_COMM
 */
BEGIN
{
	this->s = speculation();
	commit(this->s);
	trace(1);
}

/* NAME what records data may not follow commit()
 * TAG D_DREC_COMM
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	this->s = speculation();
	commit(this->s);
	trace(1);
}

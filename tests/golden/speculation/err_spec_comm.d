/* NAME speculate() may not follow commit()
 * TAG D_SPEC_COMM
 * SKIP commit() is not supported yet
 */
BEGIN
{
	this->s = speculation();
	commit(this->s);
	speculate(this->s);
}

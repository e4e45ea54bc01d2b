/* NAME speculate() may not follow commit()
 * TAG D_SPEC_COMM
 */
BEGIN
{
	this->s = speculation();
	commit(this->s);
	speculate(this->s);
}

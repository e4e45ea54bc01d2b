/* NAME speculate() may not follow commit()
 * TAG D_SPEC_COMM
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	this->s = speculation();
	commit(this->s);
	speculate(this->s);
}

/* NAME speculate() must precede what records data
 * TAG D_SPEC_DREC
 */
BEGIN
{
	this->s = speculation();
	trace(this->s);
	speculate(this->s);
}

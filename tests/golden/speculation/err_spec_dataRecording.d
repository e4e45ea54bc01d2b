/* NAME speculate() must precede what records data
 * TAG D_SPEC_DREC
 * SKIP speculate() is not supported yet
 */
BEGIN
{
	this->s = speculation();
	trace(this->s);
	speculate(this->s);
}

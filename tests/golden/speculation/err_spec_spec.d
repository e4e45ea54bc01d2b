/* NAME a clause may speculate only once
 * TAG D_SPEC_SPEC
 * SKIP speculate() is not supported yet
 */
BEGIN
{
	this->s = speculation();
	speculate(this->s);
	speculate(this->s);
}

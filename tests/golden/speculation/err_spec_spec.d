/* NAME a clause may speculate only once
 * TAG D_SPEC_SPEC
 */
BEGIN
{
	this->s = speculation();
	speculate(this->s);
	speculate(this->s);
}

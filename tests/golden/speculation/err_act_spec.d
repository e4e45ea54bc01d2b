/* NAME a destructive action may not be speculative
 * TAG D_ACT_SPEC
 */
BEGIN
{
	this->s = speculation();
	speculate(this->s);
	panic();
}

/* NAME a destructive action may not be speculative
 * TAG D_ACT_SPEC
 * SKIP speculate() is not supported yet
 */
BEGIN
{
	this->s = speculation();
	speculate(this->s);
	panic();
}

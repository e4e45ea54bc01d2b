/* NAME exit() may not be speculative
 * TAG D_EXIT_SPEC
 * SKIP speculate() is not supported yet
 */
BEGIN
{
	this->s = speculation();
	speculate(this->s);
	exit(0);
}

/* NAME exit() may not be speculative
 * TAG D_EXIT_SPEC
 */
BEGIN
{
	this->s = speculation();
	speculate(this->s);
	exit(0);
}

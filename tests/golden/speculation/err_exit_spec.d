/* NAME exit() may not be speculative
 * TAG D_EXIT_SPEC
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
{
	this->s = speculation();
	speculate(this->s);
	exit(0);
}

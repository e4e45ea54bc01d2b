/* NAME a probe that does not exist is an error
 * TAG D_PDESC_ZERO
 */
BEGINS
{
	exit(0);
}

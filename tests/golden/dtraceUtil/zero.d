/* NAME a description that matches nothing is an error
 * TAG D_PDESC_ZERO
 */
nothing:::here
{
	exit(0);
}

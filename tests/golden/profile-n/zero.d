/* NAME a rate of 0 matches nothing
 * TAG D_PDESC_ZERO
 */
profile-0
{
	exit(0);
}

/* NAME 200 us is the shortest interval
 * TAG D_PDESC_ZERO
 */
profile-199us
{
	exit(0);
}

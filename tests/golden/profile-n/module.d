/* NAME profile has no modules
 * TAG D_PDESC_ZERO
 */
profile:x::profile-10
{
	exit(0);
}

/* NAME more than 5000 a second match nothing
 * TAG D_PDESC_ZERO
 */
profile-6000hz
{
	exit(0);
}

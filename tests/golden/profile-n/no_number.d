/* NAME a rate needs a number
 * TAG D_PDESC_ZERO
 */
profile-ms
{
	exit(0);
}

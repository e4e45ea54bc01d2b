/* NAME a suffix that does not exist matches nothing
 * TAG D_PDESC_ZERO
 */
profile-5parsec
{
	exit(0);
}

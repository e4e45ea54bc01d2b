/* NAME a suffix that does not exist matches nothing
 * TAG D_PDESC_ZERO
 */
tick-1fortnight
{
	exit(0);
}

/* NAME a tick of zero matches nothing
 * TAG D_PDESC_ZERO
 */
tick-0
{
	exit(0);
}

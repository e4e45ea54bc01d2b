/* NAME a number that no probe has is no description
 * TAG D_PDESC_INVAL
 */
99999999
{
	exit(0);
}

/* NAME names are case sensitive
 * TAG D_PDESC_ZERO
 */
begin
{
	exit(0);
}

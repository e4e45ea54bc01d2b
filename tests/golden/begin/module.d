/* NAME BEGIN has no module
 * TAG D_PDESC_ZERO
 */
dtrace:nothing::BEGIN
{
	exit(0);
}

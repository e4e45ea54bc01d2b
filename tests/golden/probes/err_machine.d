/* NAME a fifth field is the machine, of which there is none
 * TAG D_PDESC_ZERO
 */
web1:dtrace:::BEGIN
{
	exit(0);
}

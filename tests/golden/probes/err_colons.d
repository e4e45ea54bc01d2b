/* NAME a description has at most four fields
 * TAG D_PDESC_INVAL
 */
a:b:c:d:e
{
	exit(0);
}

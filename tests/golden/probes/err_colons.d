/* NAME a description has at most four fields, and one before them for the machine
 * TAG D_PDESC_INVAL
 */
a:b:c:d:e:f
{
	exit(0);
}

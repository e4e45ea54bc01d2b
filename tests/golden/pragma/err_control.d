/* NAME a control line that does not exist is an error
 * TAG D_PRAGCTL_INVAL
 */
#nowhere
BEGIN
{
	exit(0);
}

/* NAME the status of exit() is a number
 * TAG D_PROTO_ARG
 */
BEGIN
{
	exit("zero");
}

/* NAME copyinto() takes a pointer to where it writes, no number
 * TAG D_PROTO_ARG
 */
BEGIN
{
	copyinto(1, 2, 3);
}

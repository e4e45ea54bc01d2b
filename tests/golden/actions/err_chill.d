/* NAME chill() takes nanoseconds
 * TAG D_PROTO_ARG
 * OPTIONS -w
 */
BEGIN
{
	chill("long");
}

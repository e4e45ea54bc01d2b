/* NAME chill() takes nanoseconds
 * TAG D_PROTO_ARG
 * OPTIONS -w
 * SKIP chill() is not supported yet
 */
BEGIN
{
	chill("long");
}

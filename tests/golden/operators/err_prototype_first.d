/* NAME a prototype inside comes before ?:
 * TAG D_PROTO_LEN
 */
BEGIN
{
	pid ? trace() : trace(1);
}

/* NAME printa() takes arguments
 * TAG D_PRINTA_PROTO
 * SKIP the command says D_PROTO_LEN instead
 */
BEGIN
{
	printa();
}

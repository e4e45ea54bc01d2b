/* NAME printa() takes arguments
 * TAG D_PRINTA_PROTO
 */
BEGIN
{
	printa();
}

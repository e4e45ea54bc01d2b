/* NAME an array cannot be stepped
 * TAG D_OP_ARRFUN
 */
int a[4];
BEGIN
{
	a++;
}

/* NAME an array cannot be assigned a number
 * TAG D_OP_ARRFUN
 */
int a[4];
BEGIN
{
	a = 1;
}

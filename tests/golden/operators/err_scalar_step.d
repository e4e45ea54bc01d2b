/* NAME an array cannot be stepped
 * TAG D_OP_SCALAR
 */
int a[4];
BEGIN
{
	a++;
}

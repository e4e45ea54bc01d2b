/* NAME a scalar array's index is a number
 * TAG D_OP_INCOMPAT
 */
int a[3];
BEGIN
{
	trace(a["x"]);
}

/* NAME an action is no condition
 * TAG D_PRED_SCALAR
 */
BEGIN
/printf("x")/
{
	exit(0);
}

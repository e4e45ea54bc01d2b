/* NAME a string is no predicate
 * TAG D_PRED_SCALAR
 */
BEGIN
/ "text" /
{
	exit(0);
}

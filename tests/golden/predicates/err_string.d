/* NAME a string is no predicate
 * TAG D_PRED_SCALAR
 * SKIP the command says D_UNKNOWN instead
 */
BEGIN
/ "text" /
{
	exit(0);
}

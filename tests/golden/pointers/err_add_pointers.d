/* NAME two pointers cannot be added
 * TAG D_OP_INCOMPAT
 */
int *first, *second;
BEGIN
{
	trace(first + second);
}

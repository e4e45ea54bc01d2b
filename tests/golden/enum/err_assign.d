/* NAME an enumerator cannot be assigned to
 * TAG D_OP_LVAL
 * SKIP the command accepts it
 */
enum color {
	RED
};
BEGIN
{
	RED = 2;
}

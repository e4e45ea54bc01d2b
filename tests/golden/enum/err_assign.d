/* NAME an enumerator cannot be assigned to
 * TAG D_OP_LVAL
 */
enum color {
	RED
};
BEGIN
{
	RED = 2;
}

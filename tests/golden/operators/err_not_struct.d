/* NAME ! takes a scalar
 * TAG D_OP_SCALAR
 * SKIP the command says D_UNKNOWN instead
 */
struct pair {
	int a;
	int b;
};
struct pair *both;
BEGIN
{
	trace(!*both);
}

/* NAME ! takes a scalar
 * TAG D_OP_SCALAR
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

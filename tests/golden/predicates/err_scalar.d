/* NAME a predicate is a scalar
 * TAG D_PRED_SCALAR
 */
struct pair {
	int a;
	int b;
};
struct pair *both;
BEGIN
/ *both /
{
	exit(0);
}

/* NAME a struct is not long
 * TAG D_DECL_LONGINT
 * SKIP the command says D_DECL_COMBO instead
 */
struct pair {
	int a;
};
long struct pair x;
BEGIN
{
	exit(0);
}

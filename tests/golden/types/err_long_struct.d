/* NAME a struct is not long
 * TAG D_DECL_LONGINT
 */
struct pair {
	int a;
};
long struct pair x;
BEGIN
{
	exit(0);
}

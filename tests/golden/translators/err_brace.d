/* NAME a brace after a structure begins its definition
 * TAG D_DECL_TYPERED
 */
struct s {
	int x;
};
translator struct s { int *p > {
	x = 1;
};
BEGIN
{
	exit(0);
}

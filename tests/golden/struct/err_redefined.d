/* NAME a struct is defined once
 * TAG D_DECL_TYPERED
 */
struct pair {
	int a;
};
struct pair {
	int b;
};
BEGIN
{
	exit(0);
}

/* NAME a type is defined without a scope
 * TAG D_SYNTAX
 */
struct foo`bar {
	int x;
};
BEGIN
{
	exit(0);
}

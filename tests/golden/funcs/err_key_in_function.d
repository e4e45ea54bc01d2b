/* NAME a D function is not defined, only declared
 * TAG D_SYNTAX
 */
int f(int x) { return x; }
BEGIN
{
	exit(0);
}

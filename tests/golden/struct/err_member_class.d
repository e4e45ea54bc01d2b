/* NAME a member has no storage class
 * TAG D_SYNTAX
 */
struct pair {
	static int a;
};
BEGIN
{
	exit(0);
}

/* NAME a member has no storage class
 * TAG D_SYNTAX
 * SKIP the command accepts it
 */
struct pair {
	static int a;
};
BEGIN
{
	exit(0);
}

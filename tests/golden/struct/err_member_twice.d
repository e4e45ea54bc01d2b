/* NAME a member name is used once
 * TAG D_UNKNOWN
 */
struct pair {
	int a;
	char a;
};
BEGIN
{
	exit(0);
}

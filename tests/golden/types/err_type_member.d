/* NAME a member exists
 * TAG D_TYPE_MEMBER
 */
struct pair {
	int a;
	int b;
};
struct pair *both;
BEGIN
{
	trace(both->c);
}

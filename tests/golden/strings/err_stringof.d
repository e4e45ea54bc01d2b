/* NAME stringof takes what could be a string
 * TAG D_STRINGOF_TYPE
 */
struct pair {
	int a;
	int b;
};
struct pair *both;
BEGIN
{
	trace(stringof(*both));
}

/* NAME print() shows all members of a union
 * OPTIONS -q
 */
union v {
	int i;
	char c;
};
union v x;

BEGIN
{
	x.i = 65;
	print(x);
	exit(0);
}
/* EXPECT
 * union v {
 *     int i = 0x41
 *     char c = 'A'
 * }
 *
 */

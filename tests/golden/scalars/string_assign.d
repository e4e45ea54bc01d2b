/* NAME strings are assigned by value
 * OPTIONS -q
 */
BEGIN
{
	a = "first";
	b = a;
	a = "second";
	printf("%s %s\n", a, b);
	exit(0);
}
/* EXPECT
 * second first
 *
 */

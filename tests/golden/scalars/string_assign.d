/* NAME strings are assigned by value
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
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

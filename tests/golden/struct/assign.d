/* NAME a struct is assigned as a whole
 * OPTIONS -q
 */
struct pair {
	int a;
	int b;
};
struct pair one;
struct pair two;
BEGIN
{
	one.a = 1;
	one.b = 2;
	two = one;
	one.a = 9;
	printf("%d %d\n", two.a, two.b);
	exit(0);
}
/* EXPECT
 * 1 2
 *
 */

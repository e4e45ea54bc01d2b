/* NAME normalize() divides what is printed, denormalize() undoes it
 * OPTIONS -q
 */
BEGIN
{
	@t["a"] = sum(50);
	@t["b"] = sum(75);
	normalize(@t, 10);
	printa("%s %@d\n", @t);
	denormalize(@t);
	printa("%s %@d\n", @t);
	exit(0);
}
/* EXPECT
 * a 5
 * b 7
 * a 50
 * b 75
 *
 */

/* NAME keys of several types
 * OPTIONS -q
 */
BEGIN
{
	a[1, "x"] = 10;
	a[1, "y"] = 20;
	a[2, "x"] = 30;
	printf("%d %d %d %d\n", a[1, "x"], a[1, "y"], a[2, "x"], a[2, "y"]);
	exit(0);
}
/* EXPECT
 * 10 20 30 0
 *
 */

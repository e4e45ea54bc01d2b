/* NAME assigning zero removes an element
 * OPTIONS -q
 */
BEGIN
{
	a["k"] = 5;
	a["k"] = 0;
	printf("%d\n", a["k"]);
	exit(0);
}
/* EXPECT
 * 0
 *
 */

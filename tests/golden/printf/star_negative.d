/* NAME a negative width of * aligns to the left, a precision of * cuts text
 * OPTIONS -q
 */
BEGIN
{
	printf("%*d|%-*d|%.*s|%*s|\n", -6, 42, 6, 42, 2, "abc", 5, "x");
	exit(0);
}
/* EXPECT
 * 42    |42    |ab|    x|
 *
 */

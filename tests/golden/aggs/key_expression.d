/* NAME keys are expressions
 * OPTIONS -q
 */
BEGIN
{
	x = 5;
	@[x % 3, strjoin("a", "b")] = count();
	exit(0);
}
/* EXPECT
 *
 *         2  ab                                                                1
 */

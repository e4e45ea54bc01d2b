/* NAME integer keys are as wide as their type
 * OPTIONS -q
 */
BEGIN
{
	@[1, "s", 2] = count();
	exit(0);
}
/* EXPECT
 *
 *         1  s                                                         2                1
 */

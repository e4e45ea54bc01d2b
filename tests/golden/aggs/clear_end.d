/* NAME what was cleared is printed with zero
 * OPTIONS -q
 */
BEGIN
{
	@["a"] = sum(1);
	clear(@);
	exit(0);
}
/* EXPECT
 *
 *   a                                                                 0
 */

/* NAME aggsortrev turns the order around
 * OPTIONS -q -x aggsortrev
 */
BEGIN
{
	@["a"] = sum(1);
	@["b"] = sum(2);
	exit(0);
}
/* EXPECT
 *
 *   b                                                                 2
 *   a                                                                 1
 */

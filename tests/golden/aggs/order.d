/* NAME keys print in ascending order of their values, equal ones by key
 * OPTIONS -q
 */
BEGIN
{
	@["z"] = sum(1);
	@["a"] = sum(3);
	@["m"] = sum(2);
	@["b"] = sum(2);
	exit(0);
}
/* EXPECT
 *
 *   z                                                                 1
 *   b                                                                 2
 *   m                                                                 2
 *   a                                                                 3
 */

/* NAME a format without conversions prints once per key
 * OPTIONS -q
 */
BEGIN
{
	@[1] = count();
	@[2] = count();
	printa("line\n", @);
	exit(0);
}
/* EXPECT
 * line
 * line
 *
 */

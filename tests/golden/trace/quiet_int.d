/* NAME quietly trace() prints the number alone
 * OPTIONS -q
 */
BEGIN
{
	trace(17);
	trace(-5);
	exit(0);
}
/* EXPECT
 * 17-5
 */

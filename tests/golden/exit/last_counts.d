/* NAME the last of several statuses counts
 * EXIT 4
 * OPTIONS -q
 */
BEGIN
{
	exit(3);
	exit(4);
}
/* EXPECT
 *
 */

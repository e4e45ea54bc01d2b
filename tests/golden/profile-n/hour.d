/* NAME profile takes hour
 * OPTIONS -q
 */
BEGIN
{
	exit(0);
}
profile-1hour
{
}
/* EXPECT
 *
 */

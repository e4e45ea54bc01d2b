/* NAME profile takes day
 * OPTIONS -q
 */
BEGIN
{
	exit(0);
}
profile-1day
{
}
/* EXPECT
 *
 */

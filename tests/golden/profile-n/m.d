/* NAME profile takes m
 * OPTIONS -q
 */
BEGIN
{
	exit(0);
}
profile-1m
{
}
/* EXPECT
 *
 */

/* NAME profile takes d
 * OPTIONS -q
 */
BEGIN
{
	exit(0);
}
profile-1d
{
}
/* EXPECT
 *
 */

/* NAME profile takes s
 * OPTIONS -q
 */
BEGIN
{
	exit(0);
}
profile-1s
{
}
/* EXPECT
 *
 */

/* NAME profile takes hz
 * OPTIONS -q
 */
BEGIN
{
	exit(0);
}
profile-1hz
{
}
/* EXPECT
 *
 */

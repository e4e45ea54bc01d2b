/* NAME profile takes min
 * OPTIONS -q
 */
BEGIN
{
	exit(0);
}
profile-1min
{
}
/* EXPECT
 *
 */

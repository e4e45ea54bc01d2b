/* NAME profile takes h
 * OPTIONS -q
 */
BEGIN
{
	exit(0);
}
profile-1h
{
}
/* EXPECT
 *
 */

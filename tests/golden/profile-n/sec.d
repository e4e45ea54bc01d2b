/* NAME profile takes sec
 * OPTIONS -q
 */
BEGIN
{
	exit(0);
}
profile-1sec
{
}
/* EXPECT
 *
 */

/* NAME profile takes msec
 * OPTIONS -q
 */
profile-10msec
{
	printf("%s\n", probename);
	exit(0);
}
/* EXPECT
 * profile-10msec
 *
 */

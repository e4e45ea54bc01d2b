/* NAME profile takes ms
 * OPTIONS -q
 */
profile-10ms
{
	printf("%s\n", probename);
	exit(0);
}
/* EXPECT
 * profile-10ms
 *
 */

/* NAME profile takes us
 * OPTIONS -q
 */
profile-10000us
{
	printf("%s\n", probename);
	exit(0);
}
/* EXPECT
 * profile-10000us
 *
 */

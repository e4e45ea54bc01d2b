/* NAME profile takes usec
 * OPTIONS -q
 */
profile-10000usec
{
	printf("%s\n", probename);
	exit(0);
}
/* EXPECT
 * profile-10000usec
 *
 */

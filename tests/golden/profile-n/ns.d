/* NAME profile takes ns
 * OPTIONS -q
 */
profile-10000000ns
{
	printf("%s\n", probename);
	exit(0);
}
/* EXPECT
 * profile-10000000ns
 *
 */

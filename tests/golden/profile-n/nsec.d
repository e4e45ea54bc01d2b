/* NAME profile takes nsec
 * OPTIONS -q
 */
profile-10000000nsec
{
	printf("%s\n", probename);
	exit(0);
}
/* EXPECT
 * profile-10000000nsec
 *
 */

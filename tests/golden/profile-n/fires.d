/* NAME profile-N fires
 * OPTIONS -q
 */
profile-100
{
	printf("%s %s\n", probeprov, probename);
	exit(0);
}
/* EXPECT
 * profile profile-100
 *
 */

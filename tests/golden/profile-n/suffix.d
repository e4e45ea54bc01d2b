/* NAME profile takes the same suffixes
 * OPTIONS -q
 */
profile-5ms
{
	i++;
}
profile-5ms
/ i > 2 /
{
	printf("done\n");
	exit(0);
}
/* EXPECT
 * done
 *
 */

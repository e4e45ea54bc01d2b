/* NAME else runs when the condition is zero
 * OPTIONS -q
 */
BEGIN
{
	x = 3;
	if (x > 5) {
		printf("big\n");
	} else {
		printf("small\n");
	}
	printf("done\n");
	exit(0);
}
/* EXPECT
 * small
 * done
 *
 */

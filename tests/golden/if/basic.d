/* NAME if runs what follows when the condition is not zero
 * OPTIONS -q
 */
BEGIN
{
	if (1) {
		printf("yes\n");
	}
	if (0) {
		printf("no\n");
	}
	exit(0);
}
/* EXPECT
 * yes
 *
 */

/* NAME the statements after exit() still run
 * OPTIONS -q
 */
BEGIN
{
	exit(0);
	printf("behind\n");
}
/* EXPECT
 * behind
 *
 */

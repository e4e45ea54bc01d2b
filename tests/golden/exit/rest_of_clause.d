/* NAME the statements behind exit() still run
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
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

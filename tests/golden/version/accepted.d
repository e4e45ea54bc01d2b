/* NAME a version that was is accepted
 * OPTIONS -q -x version=1.2
 */
BEGIN
{
	printf("ok\n");
	exit(0);
}
/* EXPECT
 * ok
 *
 */

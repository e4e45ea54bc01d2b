/* NAME %% is a percent sign
 * OPTIONS -q
 */
BEGIN
{
	printf("100%%\n");
	exit(0);
}
/* EXPECT
 * 100%
 *
 */

/* NAME speculation() counts from one
 * OPTIONS -q
 */
BEGIN
{
	printf("%d\n", speculation());
	exit(0);
}
/* EXPECT
 * 1
 *
 */

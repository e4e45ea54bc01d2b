/* NAME execname is a string
 * OPTIONS -q
 */
BEGIN
{
	printf("%d\n", sizeof (execname));
	exit(0);
}
/* EXPECT
 * 256
 *
 */

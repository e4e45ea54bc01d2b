/* NAME sizeof has the type size_t
 * OPTIONS -q
 */
BEGIN
{
	printf("%d\n", sizeof (sizeof (int)));
	exit(0);
}
/* EXPECT
 * 8
 *
 */

/* NAME the size of an array is that of its elements together
 * OPTIONS -q
 */
int numbers[5];
BEGIN
{
	printf("%d\n", sizeof (numbers));
	exit(0);
}
/* EXPECT
 * 20
 *
 */

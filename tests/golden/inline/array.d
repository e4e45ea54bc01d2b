/* NAME an inline with parameters
 * OPTIONS -q
 */
inline int add[int a, int b] = a + b;
BEGIN
{
	printf("%d\n", add[3, 4]);
	exit(0);
}
/* EXPECT
 * 7
 *
 */

/* NAME an inline with parameters
 * OPTIONS -q
 * SKIP an inline with parameters is not supported yet
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

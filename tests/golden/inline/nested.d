/* NAME an inline uses another
 * OPTIONS -q
 */
inline int A = 2;
inline int B = A * 3;
BEGIN
{
	printf("%d\n", B + 1);
	exit(0);
}
/* EXPECT
 * 7
 *
 */

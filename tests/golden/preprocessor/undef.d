/* NAME #undef ends a macro
 * OPTIONS -qC
 */
#define N 1
#undef N
#define N 2
BEGIN
{
	printf("%d\n", N);
	exit(0);
}
/* EXPECT
 * 2
 *
 */

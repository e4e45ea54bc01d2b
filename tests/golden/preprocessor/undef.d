/* NAME #undef ends a macro
 * OPTIONS -qC
 * SKIP does not compile: inlines nest too deeply
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

/* NAME offsetof knows typedefs
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
 */
typedef struct {
	int a;
	int b;
} pair_t;
BEGIN
{
	printf("%d\n", offsetof(pair_t, b));
	exit(0);
}
/* EXPECT
 * 4
 *
 */

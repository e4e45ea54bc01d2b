/* NAME offsetof knows typedefs
 * OPTIONS -q
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

/* NAME an inline in a predicate
 * OPTIONS -q
 * SKIP does not compile: inlines nest too deeply
 */
inline int ENABLED = 1;
BEGIN / ENABLED /
{
	printf("on\n");
	exit(0);
}
/* EXPECT
 * on
 *
 */

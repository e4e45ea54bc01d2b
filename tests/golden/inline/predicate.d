/* NAME an inline in a predicate
 * OPTIONS -q
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

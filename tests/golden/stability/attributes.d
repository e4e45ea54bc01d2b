/* NAME #pragma D attributes sets those of an inline
 * OPTIONS -q
 */
inline int x = 4;
#pragma D attributes Unstable/Unstable/Common x
BEGIN
{
	printf("%d\n", x);
	exit(0);
}
/* EXPECT
 * 4
 *
 */

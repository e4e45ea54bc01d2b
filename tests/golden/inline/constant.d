/* NAME an inline names an expression
 * OPTIONS -q
 */
inline int LIMIT = 5 * 2;
inline string NAME = "inline";
BEGIN
{
	printf("%d %s\n", LIMIT, NAME);
	exit(0);
}
/* EXPECT
 * 10 inline
 *
 */

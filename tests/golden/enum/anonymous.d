/* NAME an enum needs no name
 * OPTIONS -q
 */
enum {
	LOW = 1,
	HIGH = LOW + 9
};
BEGIN
{
	printf("%d %d\n", LOW, HIGH);
	exit(0);
}
/* EXPECT
 * 1 10
 *
 */

/* NAME typedefs of arrays, pointers and functions
 * OPTIONS -q
 */
typedef int row_t[4];
typedef row_t *rows_t;
typedef int call_t(int, char *);
BEGIN
{
	printf("%d %d %d\n", sizeof (row_t), sizeof (rows_t), sizeof (call_t *));
	exit(0);
}
/* EXPECT
 * 16 8 8
 *
 */

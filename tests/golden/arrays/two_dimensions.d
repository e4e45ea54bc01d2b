/* NAME arrays of arrays in a struct
 * OPTIONS -q
 */
struct grid {
	int cell[2][3];
};
BEGIN
{
	printf("%d\n", sizeof (struct grid));
	exit(0);
}
/* EXPECT
 * 24
 *
 */
